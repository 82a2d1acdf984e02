"""A whole cluster in virtual time, for tests and for what-if questions: one object, no threads."""

from collections.abc import Callable, Mapping, Sequence

from logyard_domain import snapshot
from logyard_domain.codec import GENESIS, encode
from logyard_domain.commands import AnyCommand, DeclareLost, Refused, StartServer, SubmitWorkflow
from logyard_domain.definition import Workflow as Definition
from logyard_domain.evolve import replay
from logyard_domain.identifiers import Millis
from logyard_domain.records import Entry, Record
from logyard_domain.settle import next_due
from logyard_domain.work import Order
from logyard_domain.world import World
from logyard_engine.dispatch import Dispatch
from logyard_engine.log.log import Log
from logyard_engine.recovery import recover
from logyard_engine.scheduler.memory import Memory
from logyard_engine.simulation.nodes import Run, SimulatedNode, simulated_node
from logyard_engine.turn import Asked, Engine, Receipt

EPOCH_MS = 1_800_000_000_000
"""Where virtual time begins."""


class VirtualClock:
    """Time that passes only when it is told to."""

    def __init__(self) -> None:
        self.ms = EPOCH_MS

    def now(self) -> Millis:
        """The virtual instant."""
        return Millis(self.ms)

    def monotonic(self) -> float:
        """The same in seconds."""
        return self.ms / 1000


class Yard:
    """One cluster: an engine, its log, and simulated nodes.

    Give commands with `ask` or `submit`, let things happen with `turn`, `advance` and `run`.
    `script` says how attempts go; by default each lasts a second and succeeds.
    """

    def __init__(
        self,
        log: Log,
        nodes: Mapping[str, int] | None = None,
        script: Callable[[str], Run] = lambda _: Run(),
        memory: Callable[[], Memory] = Memory,
    ) -> None:
        self._memory = memory
        self.clock = VirtualClock()
        self.script = script
        self.nodes: dict[str, SimulatedNode] = {}
        self.records: list[Record] = []
        self._count = 0
        self._open(log)
        for name, cores in (nodes or {}).items():
            self.add(simulated_node(name, cores, self._run))

    @property
    def world(self) -> World:
        """The live world."""
        return self.engine.world

    def add(self, node: SimulatedNode) -> None:
        """A node joins: it registers and opens its stream."""
        self.nodes[node.facts.node] = node
        self.join(node)

    def node(self, name: str, cores: int, **facts: object) -> SimulatedNode:
        """Make a node with the yard's script, and let it join."""
        node = simulated_node(name, cores, self._run, **facts)  # type: ignore[arg-type]
        self.add(node)
        return node

    def join(self, node: SimulatedNode) -> None:
        """Register (again) and open the stream (again)."""
        self.ask(node.facts)
        self.dispatch.connect(node.facts.node, self._deliver(node))

    def leave(self, name: str) -> None:
        """Stop hearing from a node."""
        node = self.nodes.pop(name)
        self.dispatch.disconnect(name, self._delivers[node.facts.node])

    def submit(self, definition: Definition, name: str = "work", **fields: object) -> str:
        """Start a workflow; its id."""
        self._count += 1
        settings: dict[str, object] = {"key": f"k{self._count}", "user": "ana", "source": ""}
        command = SubmitWorkflow(
            name=name,
            definition=definition,
            **(settings | fields),  # type: ignore[arg-type]
        )
        return self.ask(command).workflow

    def ask(self, command: AnyCommand, actor: str = "user:ana") -> Receipt:
        """Give one command in a turn of its own. Raises Refused."""
        answer = self.turn([Asked(command, actor, f"c{len(self.records)}")])[0]
        if isinstance(answer, Refused):
            raise answer
        return answer

    def turn(self, asked: Sequence[Asked] = ()) -> tuple[Receipt | Refused, ...]:
        """One turn at the present instant."""
        turned = self.engine.turn(asked, self.clock.now())
        self.records += turned.records
        self.dispatch.committed(self.world, turned.records)
        return turned.answers

    def reports(self) -> bool:
        """Let the nodes report; whether any had something to say."""
        said = False
        for node in list(self.nodes.values()):
            report = node.report()
            if report is not None:
                said = True
                self.ask(report, f"node:{node.facts.node}")
                node.confirmed(report)
        return said

    def advance(self, ms: int) -> None:
        """Let time pass, with everything that happens in it at its instant."""
        end = self.clock.ms + ms
        while True:
            while self.reports():
                pass
            upcoming = self._next(end)
            if upcoming is None:
                break
            self._move(max(self.clock.ms, upcoming))
            # Ends come first: what ends just when it has to is not overdue.
            while self.reports():
                pass
            self.turn(self._silent())
        self._move(end)
        while self.reports():
            pass
        self.turn(self._silent())

    def run(self, most_ms: int = 10**12) -> None:
        """Let time pass until nothing is going to happen any more."""
        end = self.clock.ms + most_ms
        while True:
            while self.reports():
                pass
            upcoming = self._next(end)
            if upcoming is None:
                return
            self.advance(max(0, upcoming - self.clock.ms))

    def check(self) -> None:
        """The world folded anew from the log equals the live one.

        So does one through a snapshot.
        """
        live = snapshot.dump(self.world)
        folded = World(self.world.cluster)
        for record in self.records:
            replay(folded, record)
        assert snapshot.dump(folded) == live, "replayed != live"
        assert snapshot.dump(recover(self.engine.log)) == live, "recovered != live"
        assert snapshot.dump(snapshot.restore(live)) == live, "a snapshot changes the world"

    def crash(self, log: Log) -> None:
        """The server dies and starts anew on this log; nodes live on and connect again."""
        self._open(log)
        for node in self.nodes.values():
            self.join(node)

    def _open(self, log: Log) -> None:
        world = recover(log)
        self.records = log.read(0, log.position) if log.position else []
        self.engine = Engine(world, log, self._memory())
        self.dispatch = Dispatch(self.clock)
        self.dispatch.call = lambda function: function(self.world)
        self._delivers: dict[str, Callable[[list[Order]], None]] = {}
        self.ask(StartServer(version="simulated"), "server")

    def _move(self, instant: int) -> None:
        self.clock.ms = instant
        for name, node in self.nodes.items():
            self.dispatch.heard(name)
            node.advance(instant)

    def _run(self, allocation: str) -> Run:
        return self.script(allocation)

    def _deliver(self, node: SimulatedNode) -> Callable[[list[Order]], None]:
        def deliver(orders: list[Order]) -> None:
            node.take(orders, self.clock.ms)

        self._delivers[node.facts.node] = deliver
        return deliver

    def _silent(self) -> list[Asked]:
        found: list[DeclareLost] = self.dispatch.silent(self.world, self.clock.monotonic())
        return [Asked(command, "engine", "node.lostAfter") for command in found]

    def _next(self, end: int) -> int | None:
        times = [node.next_end() for node in self.nodes.values()]
        times.append(next_due(self.world))
        known = [time for time in times if time is not None and time <= end]
        return min(known) if known else None


def log_bytes(records: Sequence[Record]) -> bytes:
    """The bytes that these records have on a log, for comparing runs."""
    if not records:
        return b""
    entries = [Entry(r.event, r.at, r.actor, r.cause) for r in records]
    states, _ = encode(entries, records[0].cluster, 0, GENESIS)
    return b"\n".join(states)
