"""What a proof says on the wire."""

from typing import Any

from logyard_api.bodies import Reply


class Cited(Reply, frozen=True):
    """A record that the answer rests on.

    position: on the log
    chain: the hash over it and all before it
    at: when
    type: of its event
    actor: who did it
    text: what it says
    """

    position: int
    chain: str
    at: str | None
    type: str
    actor: str
    text: str


class ReadWorld(Reply, frozen=True):
    """What a tick read: the world as of a position.

    position: of the log, up to which everything counts
    chain: the hash over all of that
    now: the instant of the tick
    nodes: how many nodes there were
    nodesUp: how many of them were up
    running: allocations that held room
    waiting: ranks that wanted some
    shapes: how many different requests these made
    promises: how many had been promised something
    revision: of the configuration
    formula: by which what waits was ordered
    """

    position: int
    chain: str
    now: str | None
    nodes: int
    nodes_up: int
    running: int
    waiting: int
    shapes: int
    promises: int
    revision: int
    formula: str


class Differing(Reply, frozen=True):
    """An event of a tick that did not come out as recorded.

    number: its place in the tick, from 0
    recorded: as it is on the log; absent where there is none
    found: as it came out; absent where nothing did
    """

    number: int
    recorded: dict[str, Any] | None
    found: dict[str, Any] | None


class RunnerUp(Reply, frozen=True):
    """Another node that had room at that moment.

    nodeId: the node
    cause: why it came after the chosen one: devices, annotations, cores, kind, order, kept, room
    text: the same in words
    """

    node_id: str
    cause: str
    text: str


class Decided(Reply, frozen=True):
    """A decision that was made once more.

    what: placed or evicted
    decision: the record of it
    tick: how many events the scheduler made in that turn
    read: what it read
    equal: whether the same tick in the same world makes the same events
    differences: where not
    chosen: where it was placed
    fitted: nodes that had room for it without delaying a promise; 0 where none was looked for
    first: whether what was chosen is the first of them by the rules
    runnersUp: those that came next
    text: all this in words
    """

    what: str
    decision: Cited
    tick: int
    read: ReadWorld
    equal: bool
    differences: tuple[Differing, ...]
    chosen: str
    fitted: int
    first: bool
    runners_up: tuple[RunnerUp, ...]
    text: str


class Waits(Reply, frozen=True):
    """The tick made once where it waits.

    read: what it read
    equal: whether it stays unplaced, for the reason that is on the log
    placed: how many ranks the tick places
    waiting: how many wait
    hold: the reason on the log
    foundHold: the reason that the tick finds
    promisedAt: what is promised to it on the log
    foundPromisedAt: what the tick promises
    text: all this in words
    """

    read: ReadWorld
    equal: bool
    placed: int
    waiting: int
    hold: str
    found_hold: str
    promised_at: str | None
    found_promised_at: str | None
    text: str


class Proven(Reply, frozen=True):
    """What an explanation rests on, made once more.

    allocationId: the allocation
    position: of the log, as of which it is explained
    summary: the answer in one sentence
    equal: whether everything came out as recorded; absent where there was nothing to make anew
    decisions: its placement and its eviction, where there were such
    waits: the tick as of `position`, where it waits for room
    cited: the records that the explanation rests on
    """

    allocation_id: str
    position: int
    summary: str
    equal: bool | None
    decisions: tuple[Decided, ...]
    waits: Waits | None
    cited: tuple[Cited, ...]
