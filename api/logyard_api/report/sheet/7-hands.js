// Pointer, keyboard and the controls above the picture.
const stage = document.getElementById("stage"), hair = document.getElementById("hair");
let held = null, pinned = false;

function choose(b, left, top) {
  if (b !== chosen) { chosen = b; drawOver(); }
  showWhy(b, left, top);
}
function point(px) {
  hair.hidden = px === null || px < view.gutter || px > view.width;
  if (!hair.hidden) hair.style.left = `${px}px`;
  read(hair.hidden ? null : timeAt(px));
  document.getElementById("r-nodes").textContent = hair.hidden ? summary : moment(timeAt(px));
}

stage.addEventListener("pointermove", event => {
  const px = event.clientX - stage.getBoundingClientRect().left;
  if (held) {
    const by = (held.px - px) / (view.width - view.gutter) * (held.until - held.since);
    if (Math.abs(held.px - px) > 2) held.moved = true;
    yard.scrollTop = held.scroll + held.py - event.clientY;
    look(held.since + by, held.until + by);
    return;
  }
  point(px);
  if (pinned) return;
  const inside = yard.contains(event.target);
  choose(inside ? barAt(px, event.clientY - yard.getBoundingClientRect().top) : -1, event.clientX, event.clientY);
});
stage.addEventListener("pointerleave", () => { point(null); if (!pinned) choose(-1); });
stage.addEventListener("pointerdown", event => {
  const px = event.clientX - stage.getBoundingClientRect().left;
  if (event.button || px > view.width) return;
  held = { px, py: event.clientY, since: view.since, until: view.until, scroll: yard.scrollTop, moved: false };
  yard.classList.add("held");
});
window.addEventListener("pointerup", event => {
  if (held && !held.moved && yard.contains(event.target)) {
    const b = barAt(held.px, event.clientY - yard.getBoundingClientRect().top);
    pinned = b >= 0;
    choose(b, event.clientX, event.clientY);
  }
  held = null;
  yard.classList.remove("held");
});
stage.addEventListener("dblclick", event => zoom(.4, timeAt(event.clientX - stage.getBoundingClientRect().left)));
stage.addEventListener("wheel", event => {
  if (event.ctrlKey || event.metaKey) {
    event.preventDefault();
    zoom(Math.exp(Math.max(Math.min(event.deltaY, 60), -60) * .012), timeAt(event.clientX - stage.getBoundingClientRect().left));
  } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
    event.preventDefault();
    pan((event.deltaX || event.deltaY) / view.width);
  }
}, { passive: false });
yard.addEventListener("scroll", () => { redraw(); });

// Steps from allocation to allocation: along a node by time, or to what ran at that time on the next.
function step(along, across) {
  const middle = (view.since + view.until) / 2;
  let row = chosen >= 0 ? rowOf[seats.node[seats.from[chosen]]] : Math.floor(yard.scrollTop / view.row);
  if (along && chosen >= 0) {
    const list = seats.ofNode[order[row]];
    let at = list.findIndex(seat => seats.bar[seat] === chosen) + along;
    while (list[at] !== undefined && (!shown[seats.bar[list[at]]] || seats.bar[list[at]] === chosen)) at += along;
    if (list[at] !== undefined) reveal(seats.bar[list[at]], row);
    return;
  }
  const when = chosen >= 0 ? Math.min(Math.max(bars.begin[chosen], view.since), view.until) : middle;
  for (row += chosen >= 0 ? across : 0; row >= 0 && row < nodes.count; row += across || 1) {
    let best = -1, nearest = Infinity;
    for (const seat of seats.ofNode[order[row]]) {
      const b = seats.bar[seat], away = Math.max(bars.begin[b] - when, when - bars.end[b], 0);
      if (shown[b] && b !== chosen && away < nearest) { nearest = away; best = b; }
    }
    if (best >= 0) { reveal(best, row); return; }
  }
}
function reveal(b, row) {
  chosen = b;
  pinned = true;
  const length = view.until - view.since, middle = (bars.begin[b] + bars.end[b]) / 2;
  if (bars.begin[b] < view.since || bars.end[b] > view.until) {
    const fits = Math.max(length, (bars.end[b] - bars.begin[b]) * 1.2);
    look(middle - fits / 2, middle + fits / 2);
  }
  if (row * view.row < yard.scrollTop) yard.scrollTop = row * view.row;
  if ((row + 1) * view.row > yard.scrollTop + yard.clientHeight) yard.scrollTop = (row + 1) * view.row - yard.clientHeight;
  drawOver();
  const box = yard.getBoundingClientRect();
  const left = Math.min(Math.max(x(bars.end[b]), view.gutter), view.width);
  showWhy(b, box.left + left, box.top + (row + 1) * view.row - yard.scrollTop);
}
function rows(factor) {
  const top = yard.scrollTop / view.row;
  view.row = Math.min(Math.max(view.row * factor, 2), 160);
  layRows();
  yard.scrollTop = top * view.row;
  redraw();
}

yard.addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const keys = {
    "+": () => zoom(.6, focus()), "=": () => zoom(.6, focus()), "-": () => zoom(1.6, focus()), "0": () => look(0, SPAN),
    "]": () => rows(1.4), "[": () => rows(1 / 1.4), Escape: () => { pinned = false; choose(-1); },
    ArrowLeft: () => (event.shiftKey ? pan(-.25) : step(-1, 0)), ArrowRight: () => (event.shiftKey ? pan(.25) : step(1, 0)),
    ArrowUp: () => (event.shiftKey ? (yard.scrollTop -= 60) : step(0, -1)), ArrowDown: () => (event.shiftKey ? (yard.scrollTop += 60) : step(0, 1)),
    Home: () => look(0, view.until - view.since), End: () => look(SPAN - (view.until - view.since), SPAN),
  };
  if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
});
const focus = () => (chosen >= 0 && pinned ? Math.min(Math.max(bars.begin[chosen], view.since), view.until) : undefined);

// Filters: what is not meant stays in place and turns grey.
const ONLY = {
  "all": () => true,
  "backfilled": b => kindOf(b) === "backfilled",
  "preempting others": b => kindOf(b) === "preempting",
  "preempted": preempted,
  "failed, lost or timed out": b => BAD.has(outcomeOf(b)),
  "later than promised": b => bars.promise.has(b) && bars.begin[b] > bars.promise.get(b)[0] + 999,
  "tried again": b => bars.attempt[b] > 1,
  "behind another": b => bars.behind.has(b),
};
let alone = -1;
function filter() {
  const test = ONLY[document.getElementById("only").value], text = document.getElementById("find").value.trim().toLowerCase();
  let number = 0;
  for (let b = 0; b < bars.count; b++) {
    const owner = bars.owner[b];
    shown[b] = test(b) && (alone < 0 || classes.of[b] === alone) && (!text
      || `${allocation(b)} ${words[owners.name[owner]]} ${words[owners.user[owner]]} ${words[owners.group[owner]]}`.toLowerCase().includes(text)
      || placesOf(b).includes(text)) ? 1 : 0;
    number += shown[b];
  }
  document.getElementById("found").textContent = number === bars.count ? "" : `${count(number)} of ${count(bars.count)}`;
  redraw();
}
function makeLegend() {
  alone = -1;
  document.getElementById("legend").replaceChildren(...classes.list.map((one, i) => {
    const button = document.createElement("button"), swatch = document.createElement("span");
    swatch.className = "swatch";
    swatch.style.background = one.colour;
    swatch.textContent = one.letter;
    button.append(swatch, `${one.name} (${count(one.count)})`);
    button.setAttribute("aria-pressed", "false");
    button.addEventListener("click", () => {
      alone = alone === i ? -1 : i;
      [...button.parentNode.children].forEach((other, n) => other.setAttribute("aria-pressed", String(n === alone)));
      filter();
    });
    return button;
  }));
}
function makeOnly() {
  const select = document.getElementById("only");
  for (const [name, test] of Object.entries(ONLY)) {
    let number = 0;
    for (let b = 0; b < bars.count; b++) number += test(b) ? 1 : 0;
    if (number) select.add(new Option(`${name} (${count(number)})`, name));
  }
  select.addEventListener("change", filter);
}
