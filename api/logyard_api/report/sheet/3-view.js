// What is in sight: a window of time, rows from the scroll position on; and the words for numbers.
const view = { since: 0, until: SPAN, gutter: 60, width: 0, row: 8 };
const SHORTEST = Math.min(SPAN, 50);
const x = at => view.gutter + (at - view.since) / (view.until - view.since) * (view.width - view.gutter);
const timeAt = px => view.since + (px - view.gutter) / (view.width - view.gutter) * (view.until - view.since);

function look(since, until) {
  const length = Math.min(Math.max(until - since, SHORTEST), SPAN);
  const middle = (since + until) / 2;
  view.since = Math.min(Math.max(middle - length / 2, 0), SPAN - length);
  view.until = view.since + length;
  redraw();
}
function zoom(factor, at = (view.since + view.until) / 2) {
  look(at - (at - view.since) * factor, at + (view.until - at) * factor);
}
function pan(part) {
  const by = (view.until - view.since) * part;
  look(view.since + by, view.until + by);
}

const count = number => Math.round(number).toLocaleString("en");
function some(number) {
  return number >= 100 || Number.isInteger(number) ? count(number) : number.toFixed(number >= 10 ? 1 : 2).replace(/\.?0+$/, "");
}
function span(ms) {
  if (ms < 1000) return `${Math.round(ms)}ms`;
  const s = Math.round(ms / 1000);
  if (s < 60) return ms < 10000 ? `${(ms / 1000).toFixed(1).replace(/\.0$/, "")}s` : `${s}s`;
  for (const [size, small, unit, lesser] of [[86400, 3600, "d", "h"], [3600, 60, "h", "m"], [60, 1, "m", "s"]])
    if (s >= size) {
      const rest = Math.floor(s % size / small);
      return rest ? `${count(Math.floor(s / size))}${unit} ${rest}${lesser}` : `${count(Math.floor(s / size))}${unit}`;
    }
  return `${s}s`;
}
const pad = (number, digits = 2) => String(number).padStart(digits, "0");
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const day = date => `${date.getDate()} ${MONTHS[date.getMonth()]}`;
function clock(at, unit = 1000) {
  const date = new Date(data.since + at);
  let text = `${pad(date.getHours())}:${pad(date.getMinutes())}`;
  if (unit < 60000) text += `:${pad(date.getSeconds())}`;
  return unit < 1000 ? `${text}.${pad(date.getMilliseconds(), 3)}` : text;
}
const fine = () => (view.until - view.since < 60000 ? 1 : 1000);
const ONE_DAY = new Date(data.since).toDateString() === new Date(data.until).toDateString();
const moment = at => (ONE_DAY ? "" : `${day(new Date(data.since + at))} `) + clock(at, fine());

const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 9e5, 18e5, 36e5, 72e5, 108e5, 216e5, 432e5];
function ticks() {
  const want = (view.until - view.since) / Math.max((view.width - view.gutter) / 95, 1);
  const step = STEPS.find(one => one >= want), found = [];
  if (step) {
    // Local time: whole hours of the reader's zone, not of UTC.
    const shift = new Date(data.since + view.since).getTimezoneOffset() * 60000;
    const first = Math.ceil((data.since + view.since - shift) / step) * step + shift - data.since;
    for (let at = first; at <= view.until; at += step) {
      const date = new Date(data.since + at);
      const midnight = step >= 1000 && !date.getHours() && !date.getMinutes() && !date.getSeconds();
      found.push({ at, text: clock(at, step), day: midnight || !found.length ? day(date) : "" });
    }
    return found;
  }
  const days = [1, 2, 7].find(one => one * 864e5 >= want), date = new Date(data.since + view.since);
  const months = [1, 2, 3, 6, 12, 24, 60].find(one => one * 30 * 864e5 >= want) || 120;
  date.setHours(24, 0, 0, 0);
  if (!days) date.setMonth(Math.ceil((date.getMonth() + (date.getDate() > 1 ? 1 : 0)) / months) * months, 1);
  for (; date - data.since <= view.until; days ? date.setDate(date.getDate() + days) : date.setMonth(date.getMonth() + months)) {
    const year = date.getFullYear();
    found.push({ at: date - data.since, text: months < 12 || days ? day(date) : "1 Jan", day: year === found.year ? "" : String(found.year = year) });
  }
  return found;
}

function paper(id) {
  const canvas = document.getElementById(id), ratio = window.devicePixelRatio || 1;
  const box = canvas.getBoundingClientRect(), width = Math.round(view.width), height = Math.round(canvas.clientHeight || box.height);
  if (canvas.width !== width * ratio || canvas.height !== height * ratio) {
    canvas.width = width * ratio;
    canvas.height = height * ratio;
  }
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = "11px system-ui, sans-serif";
  return [pen, width, height];
}
function drawAxis(id) {
  const [pen, , height] = paper(id);
  pen.textBaseline = "alphabetic";
  for (const tick of view.ticks) {
    const px = Math.round(x(tick.at)) + .5;
    pen.fillStyle = ink.quiet;
    pen.fillText(tick.text, px + 3, height - 5);
    pen.fillStyle = ink.ink;
    if (tick.day) pen.fillText(tick.day, px + 3, height - 19);
    pen.fillStyle = ink.edge;
    pen.fillRect(px - .5, height - (tick.day ? 30 : 15), 1, 30);
  }
}
function drawGrid(pen, height) {
  pen.fillStyle = ink.grid;
  for (const tick of view.ticks) pen.fillRect(Math.round(x(tick.at)), 0, 1, height);
}
