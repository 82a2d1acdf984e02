// The columns of the page, as arrays with an entry for each allocation or each of its seats.
const data = JSON.parse(document.getElementById("data").textContent);
const words = data.words;
const SPAN = Math.max(data.until - data.since, 1);

function column(values, count) {
  const found = new Float64Array(count);
  return typeof values === "number" ? found.fill(values) : (found.set(values), found);
}

function summed(deltas, count) {
  const found = column(deltas, count);
  for (let i = 1; i < count; i++) found[i] += found[i - 1];
  return found;
}

const few = pairs => new Map(pairs);

const owners = (() => {
  const told = data.owners, count = told.id.length;
  return { count, id: told.id, name: column(told.name, count), organization: column(told.organization, count),
    group: column(told.group, count), user: column(told.user, count), priority: column(told.priority, count),
    submitted: column(told.submitted, count), position: column(told.position, count) };
})();

const nodes = { name: data.nodes.name, count: data.nodes.name.length,
  cores: column(data.nodes.cores, data.nodes.name.length), top: column(data.nodes.top, data.nodes.name.length) };

const bars = (() => {
  const told = data.bars, n = told.count;
  const found = { count: n };
  for (const name of ["owner", "stage", "staging", "rank", "attempt", "shape", "kind", "revision", "outcome", "runs", "parts"])
    found[name] = column(told[name], n);
  found.placed = summed(told.placed, n);
  found.placedAt = summed(told.placedAt, n);
  for (const [name, sign, of] of [["queued", -1, "placed"], ["ready", -1, "placed"], ["begin", 1, "placed"], ["end", 1, "placed"],
    ["queuedAt", -1, "placedAt"], ["readyAt", -1, "placedAt"], ["beginAt", 1, "placedAt"]]) {
    found[name] = column(told[name], n);
    for (let i = 0; i < n; i++) found[name][i] = found[of][i] + sign * found[name][i];
  }
  found.started = column(told.started, n);
  found.endAt = column(told.endAt, n);
  for (let i = 0; i < n; i++) {
    if (found.started[i] >= 0) found.started[i] += found.placed[i];
    if (found.endAt[i]) found.endAt[i] += found.placedAt[i];
  }
  for (const name of ["requeued", "exit", "signal", "peak", "error", "behind", "after", "stop", "promise"])
    found[name] = few(told[name]);
  found.waitsFrom = new Int32Array(n + 1);
  for (let i = 0; i < n; i++) found.waitsFrom[i + 1] = found.waitsFrom[i] + 2 * found.parts[i];
  found.waits = told.waits;
  return found;
})();

// A seat is a bar on one node. `ofNode` has the seats of each node by their beginning, `reach` how
// far the longest of those up to each goes: so that what is in sight can be found by bisection.
const seats = (() => {
  const told = data.bars.seats;
  let count = 0;
  for (let i = 1; i < told.length; i += 4) count += told[i];
  const bar = new Int32Array(count), node = new Int32Array(count), low = new Int32Array(count), cores = new Int32Array(count);
  const from = new Int32Array(bars.count + 1);
  let at = 0, seat = 0;
  for (let b = 0; b < bars.count; b++) {
    for (let run = 0; run < bars.runs[b]; run++, at += 4)
      for (let i = 0; i < told[at + 1]; i++, seat++) {
        bar[seat] = b; node[seat] = told[at] + i; low[seat] = told[at + 2]; cores[seat] = told[at + 3];
      }
    from[b + 1] = seat;
  }
  const lists = Array.from({ length: nodes.count }, () => []);
  for (let i = 0; i < count; i++) lists[node[i]].push(i);
  const ofNode = lists.map(list => Int32Array.from(list.sort((a, b) => bars.begin[bar[a]] - bars.begin[bar[b]])));
  const reach = ofNode.map(list => {
    let most = -Infinity;
    return Float64Array.from(list, i => (most = Math.max(most, bars.end[bar[i]])));
  });
  return { count, bar, node, low, cores, from, ofNode, reach };
})();

const allocation = b => `${owners.id[bars.owner[b]]}/${words[bars.stage[b]]}/${Math.max(bars.rank[b], 0)}#${bars.attempt[b]}`;
const kindOf = b => words[bars.kind[b]];
const outcomeOf = b => words[bars.outcome[b]];
const stopOf = b => bars.stop.get(b);
const preempted = b => bars.stop.has(b) && words[bars.stop.get(b)[0]] === "preempted";
const BAD = new Set(["failed", "lost", "timeout"]);
const BACKFILLED = 1, PREEMPTING = 2, PREEMPTED = 4, BADLY = 8;
const signs = Uint8Array.from({ length: bars.count }, (_, b) => (kindOf(b) === "backfilled" ? BACKFILLED : 0)
  | (kindOf(b) === "preempting" ? PREEMPTING : 0) | (preempted(b) ? PREEMPTED : 0) | (BAD.has(outcomeOf(b)) ? BADLY : 0));

// Rows in the order of the nodes' names, numbers in them by size.
const order = Array.from(nodes.name.keys()).sort((a, b) => nodes.name[a].localeCompare(nodes.name[b], "en", { numeric: true }));
const rowOf = new Int32Array(nodes.count);
order.forEach((node, row) => (rowOf[node] = row));
const states = Array.from({ length: nodes.count }, () => []);
for (const [node, state, since, until] of data.spans) states[node].push([words[state], since, until]);
