// Why an allocation is where it is: each line rests on the positions that it ends with.
function listed(names, most = 6) {
  return names.length > most ? `${names.slice(0, most).join(", ")} and ${count(names.length - most)} more` : names.join(", ");
}
const job = name => name.replace(/#\d+$/, "").replace(/\/0$/, "");

function placesOf(b) {
  const found = new Map();
  for (let s = seats.from[b]; s < seats.from[b + 1]; s++) found.set(seats.node[s], (found.get(seats.node[s]) || 0) + seats.cores[s]);
  return [...found.keys()].sort((one, other) => rowOf[one] - rowOf[other]).map(node => nodes.name[node]);
}

function waitLine(b) {
  const parts = [];
  for (let i = bars.waitsFrom[b]; i < bars.waitsFrom[b + 1]; i += 2) parts.push([words[bars.waits[i]], bars.waits[i + 1]]);
  const total = bars.begin[b] - bars.queued[b];
  if (total < 1) return ["not at all", bars.readyAt[b]];
  return [`${span(total)}${parts.length ? `: ${parts.map(([reason, ms]) => `${reasonWord(reason)} ${span(ms)}`).join(", ")}` : ""}`, bars.queuedAt[b], bars.readyAt[b]];
}

const REQUEUED = { retry: "it failed and was tried again", lost: "its node was lost", preempted: "it had been preempted", drained: "its node was drained" };

function howLine(b) {
  const behind = bars.behind.get(b), after = bars.after.get(b);
  if (behind) return `behind ${job(behind)}, whose room it took over`;
  if (after) return `preempted ${listed(after.map(job), 4)}`;
  return kindOf(b) === "backfilled" ? "backfilled: before one of higher priority, without delaying it" : "in its order";
}

function promiseLine(b) {
  const promise = bars.promise.get(b);
  if (!promise) return null;
  const [first, firstAt, last, lastAt, moves] = promise, off = bars.begin[b] - last;
  const times = moves === 1 ? "once" : `${count(moves)} times`;
  const moved = moves ? `${first === last ? "" : `, at first ${moment(first)}`} (moved ${times})` : "";
  const kept = Math.abs(off) < 1 ? "began just then" : off < 0 ? `began ${span(-off)} before` : `began ${span(off)} late`;
  return [`${moment(last)}${moved}; ${kept}`, ...new Set([firstAt, lastAt])];
}

function endLine(b) {
  const outcome = outcomeOf(b), ran = span(bars.end[b] - bars.begin[b]);
  if (!outcome) return [`${ran} so far: it runs still at the end of this picture`];
  const facts = [];
  if (bars.signal.has(b)) facts.push(`signal ${bars.signal.get(b)}`);
  if (bars.exit.has(b)) facts.push(`exit code ${bars.exit.get(b)}`);
  return [`${ran}, ${outcome === "timeout" ? "ended at its time limit" : outcome}${facts.length ? ` (${facts.join(", ")})` : ""}`, bars.endAt[b]];
}

const STOPS = { canceled: "its workflow was stopped", timeout: "its time limit had passed", drained: "its node was drained" };

function whyOf(b) {
  const owner = bars.owner[b], lines = [];
  const say = (label, text, positions = [], bad = false) => lines.push({ label, text, positions: positions.filter(one => one > 0), bad });
  const [waited, ...waitPositions] = waitLine(b), [ended, ...endPositions] = endLine(b), promise = promiseLine(b), stop = stopOf(b);
  const wants = data.shapes[bars.shape[b]], places = placesOf(b);
  if (wants) say("needs", wants);
  say(places.length > 1 ? `${places.length} nodes` : "node", listed(places));
  if (bars.requeued.has(b)) say("again", REQUEUED[words[bars.requeued.get(b)]] || words[bars.requeued.get(b)]);
  say("waited", waited, [...new Set(waitPositions)]);
  say("placed", `${moment(bars.placed[b])}, ${howLine(b)}; policy r${bars.revision[b]}`, [bars.placedAt[b]]);
  if (bars.begin[b] - bars.placed[b] >= 1) say("room", moment(bars.begin[b]), [bars.beginAt[b]]);
  if (promise) say("promised", promise[0], promise.slice(1));
  if (stop) {
    const [reason, at, position, by, gap] = stop, why = words[reason];
    say("stopped", why === "preempted" ? `${moment(at)}: preempted by ${by ? `${job(by)}, priority ${some(gap)} higher` : "an administrator"}` : `${moment(at)}: ${STOPS[why] || why}`, [position], why === "preempted");
  }
  say(outcomeOf(b) ? "ran" : "runs", ended, endPositions, BAD.has(outcomeOf(b)));
  if (bars.error.has(b)) say("error", bars.error.get(b), [], true);
  const group = MODES.group(b);
  const priority = owners.priority[owner] ? `, priority ${owners.priority[owner]}` : "";
  return { title: allocation(b), owner: `${words[owners.name[owner]]}, of ${words[owners.user[owner]]} (group ${group || "none"})${priority}`, lines };
}

const why = document.getElementById("why");
function showWhy(b, left, top) {
  if (b < 0) { why.hidden = true; return; }
  const told = whyOf(b), list = document.createElement("dl");
  for (const line of told.lines) {
    const label = document.createElement("dt"), text = document.createElement("dd");
    label.textContent = line.label;
    text.textContent = line.text;
    if (line.bad) text.className = "bad";
    if (line.positions.length) {
      const places = document.createElement("i");
      places.textContent = `  [${line.positions.map(count).join(" ")}]`;
      text.append(places);
    }
    list.append(label, text);
  }
  const title = document.createElement("h3"), owner = document.createElement("p");
  title.textContent = told.title;
  owner.textContent = told.owner;
  why.replaceChildren(title, owner, list);
  why.hidden = false;
  const box = why.getBoundingClientRect();
  const over = left + 16 + box.width > window.innerWidth;
  why.style.left = `${Math.max(over ? left - box.width - 16 : left + 16, 6)}px`;
  why.style.top = `${Math.max(Math.min(top + 14, window.innerHeight - box.height - 8), 6)}px`;
}
