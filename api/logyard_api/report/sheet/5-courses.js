// Numbers over time, under the nodes and in step with them.
const zero = new Float64Array(data.steps);
const waitOf = new Map(data.waits.map(one => [one.reason, one.counts]));
const sumOf = reasons => reasons.reduce((sum, reason) => waitOf.has(reason) ? sum.map((n, i) => n + waitOf.get(reason)[i]) : sum, zero);
const OUTSIDE = ["dependency", "data", "back-off"];
const queueLines = [
  { name: "wait", colour: "#d9802b", area: true, dash: [], values: sumOf(Object.keys(REASONS).filter(one => !OUTSIDE.includes(one))) },
  { name: "run", colour: "#3f6fc4", dash: [], values: data.running },
  { name: "not in the queue yet", colour: "#80868d", dash: [2, 3], values: sumOf(OUTSIDE) },
].filter(line => line.area || line.values.some(value => value));
const loadLines = data.loads.map((load, i) => ({ name: load.name, colour: PALETTE[[0, 2, 3, 1, 5, 6, 7][i % 7]], area: i === 0, dash: [[], [6, 3], [2, 2], [8, 2, 2, 2]][i % 4], values: load.share }));
const waitAreas = data.waits.map(one => ({ name: reasonWord(one.reason), colour: reasonColour(one.reason), pattern: AREAS[one.reason], values: one.counts, total: one.total }));

const stepAt = at => Math.min(Math.max(Math.floor(at / data.width), 0), data.steps - 1);
function roundUp(number) {
  const power = 10 ** Math.floor(Math.log10(Math.max(number, 1e-9)));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].find(one => one * power >= number) * power;
}

function frame(id, most, text) {
  const [pen, width, height] = paper(id);
  pen.fillStyle = ink.panel;
  pen.fillRect(view.gutter, 0, width - view.gutter, height);
  drawGrid(pen, height);
  pen.textAlign = "right";
  for (const part of [0, .5, 1]) {
    const y = Math.round(height - 4 - part * (height - 12));
    pen.fillStyle = ink.grid;
    pen.fillRect(view.gutter, y, width - view.gutter, 1);
    pen.fillStyle = ink.quiet;
    pen.fillText(text(most * part), view.gutter - 6, y + 4);
  }
  pen.textAlign = "left";
  return { pen, width, height, y: value => height - 3.5 - value / most * (height - 12) };
}

function outline(pen, values, y, first, last) {
  let open = false;
  for (let step = first; step <= last; step++) {
    if (values[step] === null) { open = false; continue; }
    const left = Math.max(x(step * data.width), view.gutter), right = Math.max(Math.min(x((step + 1) * data.width), view.width), view.gutter);
    if (open) pen.lineTo(left, y(values[step])); else pen.moveTo(left, y(values[step]));
    pen.lineTo(right, y(values[step]));
    open = true;
  }
}

function drawLines(id, lines, most, text) {
  const first = stepAt(view.since), last = stepAt(view.until - 1e-6);
  const chart = frame(id, most(first, last), text), { pen, y } = chart;
  for (const line of lines) {
    pen.strokeStyle = pen.fillStyle = line.colour;
    if (line.area) {
      pen.globalAlpha = .25;
      pen.beginPath();
      outline(pen, line.values, y, first, last);
      pen.lineTo(x(Math.min((last + 1) * data.width, SPAN)), y(0));
      pen.lineTo(Math.max(x(first * data.width), view.gutter), y(0));
      pen.fill();
      pen.globalAlpha = 1;
    }
    pen.lineWidth = x(data.width) - x(0) < 2 ? 1 : 1.6;
    pen.setLineDash(line.dash);
    pen.beginPath();
    outline(pen, line.values, y, first, last);
    pen.stroke();
    pen.setLineDash([]);
  }
}

const highest = lines => (first, last) => {
  let most = 0;
  for (const line of lines) for (let i = first; i <= last; i++) most = Math.max(most, line.values[i]);
  return roundUp(most || 1);
};

function drawWaits() {
  const first = stepAt(view.since), last = stepAt(view.until - 1e-6);
  let most = 0;
  for (let i = first; i <= last; i++) most = Math.max(most, waitAreas.reduce((sum, area) => sum + area.values[i], 0));
  const { pen, y } = frame("waits", roundUp(most || 1), some);
  let below = zero;
  for (const area of waitAreas) {
    const above = Float64Array.from(area.values, (value, i) => value + below[i]);
    for (const style of [area.colour, area.pattern && pattern(area.pattern, "rgb(255 255 255 / .5)")]) {
      if (!style) continue;
      pen.fillStyle = style;
      for (let step = first; step <= last; step++) {
        if (!area.values[step]) continue;
        // Whole pixels: between halves of them the ground would shine through.
        const left = Math.round(Math.max(x(step * data.width), view.gutter)), right = Math.round(Math.min(x((step + 1) * data.width), view.width));
        pen.fillRect(left, y(above[step]), Math.max(right - left, 1), y(below[step]) - y(above[step]));
      }
    }
    below = above;
  }
}

function drawCourses() {
  drawLines("queue", queueLines, highest(queueLines), some);
  drawLines("load", loadLines, () => 1, part => `${Math.round(part * 100)}%`);
  drawWaits();
}

function sample(line) {
  const canvas = document.createElement("canvas"), ratio = window.devicePixelRatio || 1;
  canvas.width = 20 * ratio; canvas.height = 10 * ratio;
  canvas.style.cssText = "width:20px;height:10px";
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  pen.fillStyle = pen.strokeStyle = line.colour;
  if (line.dash) {
    if (line.area) { pen.globalAlpha = .25; pen.fillRect(0, 5, 20, 5); pen.globalAlpha = 1; }
    pen.lineWidth = 2;
    pen.setLineDash(line.dash);
    pen.beginPath(); pen.moveTo(0, 5); pen.lineTo(20, 5); pen.stroke();
  } else {
    pen.fillRect(0, 0, 20, 10);
    if (line.pattern) { pen.fillStyle = pattern(line.pattern, "rgb(255 255 255 / .6)"); pen.fillRect(0, 0, 20, 10); }
  }
  return canvas;
}

// The words beside the titles: what the lines are, and their values where the pointer is.
function makeReadings() {
  const put = (id, lines) => document.getElementById(id).replaceChildren(...lines.map(line => {
    const one = document.createElement("span");
    line.reading = document.createElement("b");
    one.append(sample(line), line.name, " ", line.reading);
    return one;
  }));
  put("r-queue", queueLines);
  put("r-load", loadLines);
  put("r-waits", waitAreas);
  if (!waitAreas.length) document.getElementById("r-waits").textContent = "nothing waited";
}
function read(at) {
  const step = at === null ? -1 : stepAt(at);
  for (const line of queueLines) line.reading.textContent = step < 0 ? "" : some(line.values[step]);
  for (const line of loadLines) line.reading.textContent = step < 0 ? "" : line.values[step] === null ? "none offered" : `${some(line.values[step] * 100)}%`;
  for (const area of waitAreas) area.reading.textContent = step < 0 ? `${span(area.total)} in all` : some(area.values[step]);
}
