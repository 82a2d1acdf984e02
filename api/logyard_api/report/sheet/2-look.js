// Colours and signs. No colour says alone what it means: letters, patterns and words go with it.
const PALETTE = ["#3f6fc4", "#d9802b", "#2f8f57", "#a04fa6", "#b09300", "#1f95ab", "#cf4a62", "#86683f"];
const OTHERS = "#80868d";
const OUTCOMES = { finished: "#2f8f57", failed: "#cf4a62", timeout: "#d9802b", lost: "#a04fa6", preempted: "#b09300", canceled: "#80868d", "": "#3f6fc4" };
const KINDS = { direct: "#3f6fc4", backfilled: "#2f8f57", preempting: "#cf4a62" };
const REASONS = {
  "dependency": ["#93a1b5", "what it depends on"], "data": ["#5f86b3", "its data"], "back-off": ["#b09300", "its back-off"],
  "limit": ["#1f95ab", "its own limit of ranks"], "capacity": ["#d9802b", "capacity"], "turn": ["#a04fa6", "its turn"],
  "not-evaluated": ["#aab0b7", "being looked at"], "closed-nodes": ["#cf4a62", "closed nodes"], "no-nodes": ["#9c5560", "any node"],
  "never": ["#86683f", "nodes that there are not"], "behind": ["#2f8f57", "the one before it"], "eviction": ["#c02637", "its victims to leave"],
};
const reasonWord = reason => (REASONS[reason] || [, reason])[1];
const reasonColour = reason => (REASONS[reason] || [OTHERS])[0];

let ink = {};
function readTheme() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["bg", "panel", "ink", "quiet", "grid", "row", "edge", "bad", "focus"]) ink[name] = style.getPropertyValue(`--${name}`).trim();
}

// Small patterns, drawn over a colour. They are remembered for each context, ink and kind.
const patterns = new Map();
function pattern(kind, colour) {
  const key = `${kind} ${colour}`;
  if (!patterns.has(key)) {
    const tile = document.createElement("canvas"), ratio = window.devicePixelRatio || 1;
    tile.width = tile.height = Math.round(6 * ratio);
    const pen = tile.getContext("2d");
    pen.scale(tile.width / 6, tile.height / 6);
    pen.strokeStyle = pen.fillStyle = colour;
    pen.lineWidth = 1.3;
    pen.beginPath();
    if (kind === "hatch" || kind === "cross") { for (const x of [-6, 0, 6]) { pen.moveTo(x - 1, 7); pen.lineTo(x + 7, -1); } }
    if (kind === "back" || kind === "cross") { for (const x of [-6, 0, 6]) { pen.moveTo(x - 1, -1); pen.lineTo(x + 7, 7); } }
    if (kind === "bars") { pen.moveTo(3, 0); pen.lineTo(3, 6); }
    if (kind === "lines") { pen.moveTo(0, 3); pen.lineTo(6, 3); }
    if (kind === "dots") pen.fillRect(2, 2, 2, 2);
    pen.stroke();
    const made = pen.createPattern(tile, "repeat");
    made.setTransform(new DOMMatrix().scale(6 / tile.width));
    patterns.set(key, made);
  }
  return patterns.get(key);
}
const AREAS = { "dependency": "dots", "data": "bars", "back-off": "back", "limit": "lines", "turn": "hatch", "closed-nodes": "cross",
  "no-nodes": "back", "never": "cross", "behind": "bars", "eviction": "hatch" };

// By what bars are coloured: a number for each bar, and what each number stands for.
const letters = "ABCDEFGH";
const MODES = {
  group: b => words[owners.organization[bars.owner[b]]] && several.organization ? `${words[owners.organization[bars.owner[b]]]}/${words[owners.group[bars.owner[b]]]}` : words[owners.group[bars.owner[b]]],
  user: b => words[owners.user[bars.owner[b]]],
  kind: kindOf,
  outcome: b => outcomeOf(b) || "runs",
};
const several = { organization: new Set(owners.organization).size > 1 };
let classes = { of: new Uint8Array(0), list: [] };
function classify(mode) {
  const weight = new Map(), count = new Map(), name = MODES[mode];
  for (let b = 0; b < bars.count; b++) {
    const key = name(b);
    let cores = 0;
    for (let s = seats.from[b]; s < seats.from[b + 1]; s++) cores += seats.cores[s];
    weight.set(key, (weight.get(key) || 0) + (bars.end[b] - bars.begin[b]) * (cores || 1));
    count.set(key, (count.get(key) || 0) + 1);
  }
  const ranked = [...weight.keys()].sort((a, b) => weight.get(b) - weight.get(a) || (a < b ? -1 : 1));
  const most = ranked.length > PALETTE.length ? PALETTE.length - 1 : PALETTE.length;
  const fixed = mode === "outcome" ? OUTCOMES : mode === "kind" ? KINDS : null;
  const list = ranked.slice(0, most).map((key, i) => ({ name: key || "none", letter: letters[i],
    colour: fixed ? fixed[key === "runs" ? "" : key] || OTHERS : PALETTE[i], count: count.get(key), weight: weight.get(key) }));
  const number = new Map(ranked.map((key, i) => [key, Math.min(i, most)]));
  if (ranked.length > most) {
    const rest = ranked.slice(most);
    list.push({ name: `${rest.length.toLocaleString("en")} others`, letter: "\u2022", colour: OTHERS,
      count: rest.reduce((sum, key) => sum + count.get(key), 0) });
  }
  classes = { of: Uint8Array.from({ length: bars.count }, (_, b) => number.get(name(b))), list };
}
