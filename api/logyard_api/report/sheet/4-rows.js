// The nodes and their allocations. Bars that are wider than a pixel are drawn as such; narrower ones
// are added up by pixel, whose strength is then the part of it that was in use.
let shown = new Uint8Array(bars.count).fill(1);
let chosen = -1;
const yard = document.getElementById("yard"), tall = document.getElementById("tall"), still = document.getElementById("still");

function layRows() {
  const most = Math.max(Math.round(window.innerHeight * .6), 240);
  view.row = view.row || Math.min(Math.max(Math.floor(most / Math.max(nodes.count, 1)), 4), 96);
  const height = Math.max(view.row * nodes.count, 20);
  yard.style.height = `${Math.min(height, most)}px`;
  tall.style.height = `${height}px`;
  still.style.height = `${Math.min(height, most)}px`;
}

function firstSeat(node, at) {
  const reach = seats.reach[node];
  let low = 0, high = reach.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (reach[middle] < at) low = middle + 1; else high = middle;
  }
  return low;
}

function place(seat, top, height) {
  const node = seats.node[seat], bar = seats.bar[seat], unit = height / nodes.top[node], cores = seats.cores[seat];
  const tallness = cores ? cores * unit : Math.min(Math.max(height * .12, 1.5), 3);
  return { left: x(bars.begin[bar]), right: x(bars.end[bar]), top: cores ? top + height - (seats.low[seat] + cores) * unit : top, height: tallness };
}

let cells = { width: 0, lanes: 0 };
function cellsFor(width, lanes) {
  if (cells.width !== width || cells.lanes < lanes)
    cells = { width, lanes, use: new Float32Array(width * lanes), most: new Float32Array(width * lanes), who: new Uint8Array(width * lanes) };
  return cells;
}

function drawRows() {
  const [pen, width, height] = paper("rows"), scroll = yard.scrollTop;
  const first = Math.max(Math.floor(scroll / view.row), 0), last = Math.min(Math.ceil((scroll + height) / view.row), nodes.count);
  const marks = [];
  view.drawn = 0;
  for (let row = first; row < last; row++) drawGround(pen, order[row], row * view.row - scroll, width);
  drawGrid(pen, height);
  for (let row = first; row < last; row++) {
    const padding = view.row >= 10 ? 1 : view.row >= 6 ? .5 : 0;
    drawNode(pen, order[row], row * view.row - scroll + padding, view.row - 2 * padding - (view.row >= 4 ? .5 : 0), width, marks);
  }
  drawMarks(pen, marks);
  pen.clearRect(0, 0, view.gutter, height);
  drawNames(pen, first, last, scroll);
}

function drawGround(pen, node, top, width) {
  for (const [state, since, until] of states[node]) {
    const left = Math.max(x(since), view.gutter), right = Math.min(x(until), width);
    if (right <= left) continue;
    pen.fillStyle = ink.row;
    pen.fillRect(left, top, right - left, view.row - (view.row >= 5 ? 1 : .4));
    if (state === "up") continue;
    pen.fillStyle = pattern(state === "lost" ? "cross" : "dots", state === "lost" ? ink.bad : ink.quiet);
    pen.fillRect(left, top, right - left, view.row - 1);
    if (view.row >= 13 && right - left > 60) {
      pen.fillStyle = ink.bg;
      const wide = pen.measureText(state).width;
      pen.fillRect(left + 3, top + 1, wide + 6, 12);
      pen.fillStyle = ink.ink;
      pen.fillText(state, left + 6, top + 11);
    }
  }
}

function drawShade(pen, node, top, height) {
  const shade = data.shade[node];
  if (!shade) return;
  pen.fillStyle = ink.quiet;
  for (let step = 0; step < shade.length; step++) {
    const left = x(step * data.width), right = x((step + 1) * data.width);
    if (shade[step] && right > view.gutter && left < view.width) {
      pen.globalAlpha = Math.min(shade[step], 1) * .6;
      pen.fillRect(left, top, right - left, height);
    }
  }
  pen.globalAlpha = 1;
}

function drawNode(pen, node, top, height, width, marks) {
  drawShade(pen, node, top, height);
  const list = seats.ofNode[node], lanes = Math.max(Math.min(Math.round(height), nodes.top[node]), 1), wide = [];
  const grid = cellsFor(width, lanes), scale = (view.width - view.gutter) / (view.until - view.since), unit = height / nodes.top[node];
  let dense = false;
  for (let i = firstSeat(node, view.since); i < list.length; i++) {
    const seat = list[i], bar = seats.bar[seat];
    if (bars.begin[bar] > view.until) break;
    if (bars.end[bar] < view.since) continue;
    const long = (bars.end[bar] - bars.begin[bar]) * scale, tiny = (long < 1.6 || seats.cores[seat] * unit < .9) && seats.cores[seat];
    const sign = shown[bar] ? signs[bar] : 0, marked = sign & PREEMPTED || sign & BADLY && long >= 3;
    if (!tiny || marked) {
      const spot = place(seat, top, height);
      if (marked) marks.push([bar, spot]);
      if (!tiny) { wide.push(bar, spot); continue; }
    }
    if (!dense) { dense = true; grid.use.fill(0, 0, width * lanes); grid.most.fill(0, 0, width * lanes); }
    const left = view.gutter + (bars.begin[bar] - view.since) * scale;
    addCells(grid, bar, left, left + long, nodes.top[node] - seats.low[seat] - seats.cores[seat], seats.cores[seat], lanes / nodes.top[node], lanes, width);
  }
  if (dense) drawCells(pen, grid, top, height, lanes, width);
  for (let i = 0; i < wide.length; i += 2) drawBar(pen, wide[i], wide[i + 1]);
  view.drawn += wide.length / 2;
}

// `above` and `cores` are in cores from the top of the row, `scale` is how many lanes a core has.
function addCells(grid, bar, begin, end, above, cores, scale, lanes, width) {
  const who = shown[bar] ? classes.of[bar] : 255;
  const left = Math.max(begin, 0), right = Math.min(Math.max(end, left + .02), width);
  const first = Math.floor(above * scale + 1e-6), last = Math.min(Math.ceil((above + cores) * scale - 1e-6), lanes), share = Math.min(cores * scale, 1);
  for (let lane = first; lane < last; lane++)
    for (let px = Math.floor(left); px < right; px++) {
      const at = lane * width + px, part = (Math.min(right, px + 1) - Math.max(left, px)) * share;
      grid.use[at] += part;
      if (part > grid.most[at]) { grid.most[at] = part; grid.who[at] = who; }
    }
}

function drawCells(pen, grid, top, height, lanes, width) {
  const lane = height / lanes;
  for (let row = 0; row < lanes; row++)
    for (let px = Math.floor(view.gutter); px < width; px++) {
      const at = row * width + px;
      if (!grid.use[at]) continue;
      const strength = Math.ceil(Math.min(grid.use[at], 1) * 8), who = grid.who[at];
      let end = px + 1;
      while (end < width && grid.use[row * width + end] && grid.who[row * width + end] === who
        && Math.ceil(Math.min(grid.use[row * width + end], 1) * 8) === strength) end++;
      pen.globalAlpha = (.22 + .78 * strength / 8) * (who === 255 ? .3 : 1);
      pen.fillStyle = who === 255 ? OTHERS : classes.list[who].colour;
      pen.fillRect(px, top + row * lane, end - px, lane);
      px = end - 1;
    }
  pen.globalAlpha = 1;
}

function drawBar(pen, bar, spot) {
  const kind = classes.list[classes.of[bar]], dim = !shown[bar];
  const left = Math.max(spot.left, view.gutter - 4), right = Math.min(spot.right, view.width + 4);
  const wide = right - left, gap = spot.right - spot.left >= 5 ? 1 : wide > 2.5 ? .4 : 0;
  const high = spot.height - (spot.height >= 6 ? 1 : spot.height >= 3 ? .4 : 0);
  pen.globalAlpha = dim ? .22 : 1;
  pen.fillStyle = dim ? OTHERS : kind.colour;
  pen.fillRect(left, spot.top, wide - gap, high);
  if (!dim && wide >= 5 && high >= 3.5) {
    if (signs[bar] & BACKFILLED) {
      pen.fillStyle = pattern("hatch", "rgb(255 255 255 / .62)");
      pen.fillRect(left, spot.top, wide - gap, high);
    } else if (signs[bar] & PREEMPTING) {
      pen.strokeStyle = ink.ink;
      pen.lineWidth = high >= 8 ? 2 : 1;
      pen.strokeRect(left + 1, spot.top + pen.lineWidth / 2, wide - gap - 2, high - pen.lineWidth);
    }
    if (high >= 11 && wide >= 14) drawLabel(pen, bar, kind, left, spot.top, wide - gap, high);
  }
  pen.globalAlpha = 1;
}

function drawLabel(pen, bar, kind, left, top, wide, high) {
  const from = Math.max(left, view.gutter) + 4, room = left + wide - from - 4;
  if (room < 8) return;
  const name = `${words[owners.name[bars.owner[bar]]]}/${words[bars.stage[bar]]}${bars.rank[bar] >= 0 ? `[${bars.rank[bar]}]` : ""}`;
  let text = room >= 40 ? `${kind.letter} ${name}` : kind.letter;
  if (pen.measureText(text).width > room)
    text = text.slice(0, Math.max(Math.floor(text.length * room / pen.measureText(text).width) - 1, 1));
  const wideness = pen.measureText(text).width, middle = top + Math.min(high / 2, 9);
  if (signs[bar] & BACKFILLED) {
    pen.fillStyle = kind.colour;
    pen.fillRect(from - 2, middle - 6, wideness + 4, 12);
  }
  pen.fillStyle = "#fff";
  pen.textBaseline = "middle";
  pen.fillText(text, from, middle + .5);
  pen.textBaseline = "alphabetic";
}

// A notch where one was preempted, a cross where one ended badly: always in sight, however narrow.
function drawMarks(pen, marks) {
  const crowd = marks.length > 4000;
  for (const [bar, spot] of marks) {
    if (spot.right < view.gutter || spot.right > view.width + 6) continue;
    const size = Math.min(Math.max(spot.height * .5, 4), 14), right = spot.right, top = spot.top;
    if (signs[bar] & PREEMPTED) {
      pen.beginPath();
      pen.moveTo(right + .5, top - .5); pen.lineTo(right - size, top - .5); pen.lineTo(right + .5, top + size * 1.2);
      pen.closePath();
      pen.fillStyle = ink.bg;
      pen.fill();
      pen.strokeStyle = ink.bad;
      pen.lineWidth = crowd ? .7 : 1.5;
      pen.beginPath();
      pen.moveTo(right - size, top); pen.lineTo(right, top + size * 1.2);
      pen.stroke();
    } else if (spot.right - spot.left >= 8 && spot.height >= 6) {
      const arm = Math.min(spot.height * .25, 4), at = right - arm - 3, middle = top + spot.height / 2;
      pen.fillStyle = ink.bg;
      pen.fillRect(at - arm - 1.5, middle - arm - 1.5, 2 * arm + 3, 2 * arm + 3);
      pen.strokeStyle = ink.bad;
      pen.lineWidth = 1.6;
      pen.beginPath();
      pen.moveTo(at - arm, middle - arm); pen.lineTo(at + arm, middle + arm);
      pen.moveTo(at - arm, middle + arm); pen.lineTo(at + arm, middle - arm);
      pen.stroke();
    } else {
      pen.fillStyle = ink.bad;
      pen.fillRect(right - 1.5, top, 1.5, spot.height);
    }
  }
}

function drawNames(pen, first, last, scroll) {
  const every = Math.max(Math.ceil(13 / view.row), 1);
  pen.textAlign = "right";
  pen.textBaseline = "middle";
  pen.fillStyle = ink.quiet;
  for (let row = first; row < last; row++)
    if (row % every === 0) pen.fillText(nodes.name[order[row]], view.gutter - 7, Math.max((row + .5) * view.row - scroll, 6), view.gutter - 10);
  pen.textAlign = "left";
  pen.textBaseline = "alphabetic";
}

// What is under the pointer or was stepped to: outlined on all of its nodes, with its wait before it.
function drawOver() {
  const [pen] = paper("over"), scroll = yard.scrollTop;
  if (chosen < 0) return;
  pen.beginPath();
  pen.rect(view.gutter, 0, view.width, yard.clientHeight);
  pen.save();
  pen.clip();
  for (let seat = seats.from[chosen]; seat < seats.from[chosen + 1]; seat++) {
    const top = rowOf[seats.node[seat]] * view.row - scroll;
    if (top < -view.row || top > yard.clientHeight) continue;
    const spot = place(seat, top, view.row - .5);
    pen.strokeStyle = ink.bg;
    pen.lineWidth = 4;
    pen.strokeRect(spot.left, spot.top, Math.max(spot.right - spot.left, 2), spot.height);
    pen.strokeStyle = ink.ink;
    pen.lineWidth = 2;
    pen.strokeRect(spot.left, spot.top, Math.max(spot.right - spot.left, 2), spot.height);
    const middle = top + view.row / 2;
    pen.fillStyle = ink.ink;
    pen.fillRect(x(bars.ready[chosen]), middle - .75, x(bars.begin[chosen]) - x(bars.ready[chosen]), 1.5);
    pen.fillRect(x(bars.ready[chosen]) - 1, middle - 4, 2, 8);
    const promise = bars.promise.get(chosen);
    if (promise) {
      pen.strokeStyle = ink.bad;
      pen.setLineDash([3, 2]);
      pen.beginPath();
      pen.moveTo(x(promise[2]), top); pen.lineTo(x(promise[2]), top + view.row);
      pen.stroke();
      pen.setLineDash([]);
    }
  }
  pen.restore();
}

function barAt(px, py) {
  const row = Math.floor((py + yard.scrollTop) / view.row), node = order[row];
  if (node === undefined || px < view.gutter) return -1;
  const list = seats.ofNode[node], at = timeAt(px), near = timeAt(px + 2) - at, top = row * view.row - yard.scrollTop;
  let best = -1, nearest = Infinity;
  for (let i = firstSeat(node, at - near); i < list.length; i++) {
    const bar = seats.bar[list[i]];
    if (bars.begin[bar] > at + near) break;
    const away = Math.max(bars.begin[bar] - at, at - bars.end[bar], 0);
    if (away > near) continue;
    const spot = place(list[i], top, view.row - .5);
    const off = Math.max(spot.top - py, py - spot.top - spot.height, 0) + away / near + (shown[bar] ? 0 : 4);
    if (off < nearest) { nearest = off; best = bar; }
  }
  return nearest < 8 ? best : -1;
}
