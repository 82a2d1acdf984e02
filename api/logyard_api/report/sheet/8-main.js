// Puts it together, and draws anew once for each frame at most.
const SIGNS = [
  ["hatched: backfilled", (pen, full) => { full(); pen.fillStyle = pattern("hatch", "rgb(255 255 255 / .62)"); pen.fillRect(0, 1, 26, 12); }],
  ["outlined: preempted others", (pen, full) => { full(); pen.strokeStyle = ink.ink; pen.lineWidth = 2; pen.strokeRect(1, 2, 24, 10); }],
  ["notch: was preempted there", (pen, full) => {
    full();
    pen.fillStyle = ink.bg; pen.beginPath(); pen.moveTo(26, 1); pen.lineTo(17, 1); pen.lineTo(26, 12); pen.fill();
    pen.strokeStyle = ink.bad; pen.lineWidth = 1.5; pen.beginPath(); pen.moveTo(17, 1); pen.lineTo(26, 12); pen.stroke();
  }],
  ["cross: failed, lost or timed out", (pen, full) => {
    full();
    pen.fillStyle = ink.bg; pen.fillRect(14, 2, 10, 10);
    pen.strokeStyle = ink.bad; pen.lineWidth = 1.6; pen.beginPath(); pen.moveTo(16, 4); pen.lineTo(22, 10); pen.moveTo(16, 10); pen.lineTo(22, 4); pen.stroke();
  }],
  ["crossed ground: node lost", pen => { pen.fillStyle = ink.row; pen.fillRect(0, 1, 26, 12); pen.fillStyle = pattern("cross", ink.bad); pen.fillRect(0, 1, 26, 12); }],
  ["dotted ground: node closed", pen => { pen.fillStyle = ink.row; pen.fillRect(0, 1, 26, 12); pen.fillStyle = pattern("dots", ink.quiet); pen.fillRect(0, 1, 26, 12); }],
  ["paler: many short ones, the node not full", pen => { for (let i = 0; i < 26; i++) { pen.globalAlpha = .22 + .78 * Math.abs(Math.sin(i * 1.7)); pen.fillStyle = PALETTE[0]; pen.fillRect(i, 1, 1, 12); } }],
];
function makeSigns() {
  document.getElementById("signs").replaceChildren(...SIGNS.map(([text, draw]) => {
    const canvas = document.createElement("canvas"), ratio = window.devicePixelRatio || 1, one = document.createElement("span");
    canvas.width = 26 * ratio; canvas.height = 14 * ratio;
    canvas.style.cssText = "width:26px;height:14px";
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    draw(pen, () => { pen.fillStyle = PALETTE[0]; pen.fillRect(0, 1, 26, 12); });
    one.append(canvas, text);
    return one;
  }));
}

const summary = bars.count
  ? `${count(bars.count)} allocations drawn on ${count(nodes.count)} nodes${several.organization ? ", of several organizations" : ""}`
  : "no allocation had room in this span";
let waiting = false;
function redraw() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    view.ticks = ticks();
    drawAxis("axis");
    drawRows();
    drawOver();
    drawCourses();
    drawAxis("axis2");
  });
}
function lay() {
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = "11px system-ui, sans-serif";
  const widest = nodes.name.reduce((most, name) => Math.max(most, pen.measureText(name.slice(0, 24)).width), 0);
  view.gutter = Math.round(Math.min(Math.max(widest + 14, 46), 170));
  layRows();
  view.width = yard.clientWidth;
  for (const id of ["rows", "over"]) {
    document.getElementById(id).style.width = `${view.width}px`;
    document.getElementById(id).style.height = still.style.height;
  }
  for (const id of ["axis", "axis2", "queue", "load", "waits"]) document.getElementById(id).style.width = `${view.width}px`;
  redraw();
}
function wear(theme) {
  document.documentElement.dataset.theme = theme;
  document.getElementById("theme").textContent = theme === "dark" ? "light" : "dark";
  readTheme();
  patterns.clear();
  makeSigns();
  redraw();
}
function localise() {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  for (const one of document.querySelectorAll("time")) {
    const date = new Date(one.dateTime);
    one.textContent = `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())} ${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`;
    one.title = `${one.dateTime}; shown in ${zone}`;
  }
  for (const one of document.querySelectorAll(".zone")) one.textContent = zone;
}

document.getElementById("main").hidden = false;
for (const mode of Object.keys(MODES)) document.getElementById("colour").add(new Option(`by ${mode}`, mode));
document.getElementById("colour").addEventListener("change", event => { classify(event.target.value); makeLegend(); filter(); });
document.getElementById("find").addEventListener("input", filter);
for (const [id, act] of Object.entries({ closer: () => zoom(.6), wider: () => zoom(1.6), whole: () => look(0, SPAN), taller: () => { rows(1.4); lay(); }, flatter: () => { rows(1 / 1.4); lay(); } }))
  document.getElementById(id).addEventListener("click", act);
document.getElementById("theme").addEventListener("click", () => wear(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
view.row = 0;
localise();
wear(document.documentElement.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
const mode = ["group", "user", "kind"].find(one => { classify(one); return classes.list.length > 1; }) || "group";
document.getElementById("colour").value = mode;
classify(mode);
makeLegend();
makeOnly();
makeReadings();
read(null);
lay();
point(null);
window.addEventListener("resize", () => { patterns.clear(); lay(); });
