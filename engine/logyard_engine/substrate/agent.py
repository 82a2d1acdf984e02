"""The agent: takes orders, has the keeper carry them out, and reports.

One thread waits for the keeper and for the agent's ear (`ear.Ear`). What it does itself (volumes,
removing folders) runs in a few side threads. It keeps nothing on disk: the keeper knows what runs
and what has ended, the server's `Sync` knows what should, and `Agent` makes the two agree.
"""

import logging
import select
import threading
from math import inf
from pathlib import Path
from typing import assert_never

import msgspec

from logyard_domain.commands import Ended, Refused, RegisterNode, Report
from logyard_domain.work import DropVolumes, Order, Start, Stop, Sync, Task
from logyard_engine.clock import Clock
from logyard_engine.substrate import ear, endings
from logyard_engine.substrate.commandline import Refusal
from logyard_engine.substrate.ear import Leaving
from logyard_engine.substrate.hand import Hand
from logyard_engine.substrate.keeping import ChildEnd, KeeperClient, KeeperError, Known
from logyard_engine.substrate.link import Link, Outputs
from logyard_engine.substrate.outbox import Outbox
from logyard_engine.substrate.runs import Run, Runs
from logyard_engine.substrate.runtime import Footprint, Runtime
from logyard_engine.substrate.seats import Seats
from logyard_engine.substrate.side import SideWork
from logyard_engine.substrate.tasks import Tasks
from logyard_engine.substrate.volumes import Volumes

HEARTBEAT_S = 5.0
_BACK_OFF_S = (0.05, 5.0)
_IDLE_WORKFLOW_S = 30.0
_GATHER_S = 0.008
_AHEAD_LOW = 16
"""More than so many allocations that wait behind others are work for longer than a report takes."""
_KILL_GRACE_MS = 5_000
_KILL_WAIT_S = 10.0

_log = logging.getLogger(__name__)


class Agent:
    """A node at work. `registration` lacks only the incarnation, which is the keeper's.

    `folder` is the node's own; the keeper lives there.
    """

    def __init__(
        self,
        registration: RegisterNode,
        folder: Path,
        link: Link,
        runtime: Runtime,
        volumes: Volumes,
        seats: Seats,
        clock: Clock,
        outputs: Outputs | None = None,
        heartbeat_s: float = HEARTBEAT_S,
    ) -> None:
        self._registration = registration
        self._folder = folder
        self._link = link
        self._runtime = runtime
        self._seats = seats
        self._clock = clock
        self._outputs = outputs
        self._heartbeat_s = heartbeat_s
        self._ear = ear.Ear()
        self._outbox = Outbox(registration.node)
        self._side = SideWork(volumes, runtime, clock, self._ear)
        self._thread = threading.Thread(target=self._work, name="logyard-agent", daemon=True)
        self._epoll = select.epoll()
        self._hand = Hand(self._epoll)
        self._tasks = Tasks()
        self._runs = Runs()
        self._recent: set[str] | None = None
        self._ahead: set[str] = set()
        self._dropping: set[str] = set()
        self._leaving: Leaving | None = None
        self._register_at: float | None = None
        self._attach_at = 0.0
        self._leave_by = 0.0
        self._report_at = 0.0
        self._back_off_s = _BACK_OFF_S[0]
        self._beat_at = 0.0

    def start(self) -> None:
        """Find or start the keeper, then work in a thread. Raises `keeping.KeeperError`."""
        self._epoll.register(self._ear.fileno(), select.EPOLLIN | select.EPOLLET)
        self._attach()
        self._thread.start()

    def stop(self, how: Leaving = "leave", timeout_s: float | None = None) -> bool:
        """End the agent; whether it has ended within `timeout_s`.

        ``leave`` leaves jobs to the keeper (which ends by itself if there are none), for the next
        agent; ``drain`` starts nothing more and waits for the jobs' ends to be acknowledged;
        ``kill`` ends the jobs, SIGTERM first.
        """
        if self._thread.ident is None:
            return True
        self._ear.say(ear.Leave(how))
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    # The thread: wait, hear, tell.

    def _work(self) -> None:
        try:
            while not self._gone():
                for fd, _ in self._epoll.poll(self._wait_s()):
                    if fd == self._ear.fileno():
                        for word in self._ear.words():
                            self._on_word(word)
                    else:
                        self._on_keeper()
                self._on_time()
                self._tell()
        finally:
            self._leave()

    def _wait_s(self) -> float:
        due = self._beat_at
        if self._register_at is not None:
            due = min(due, self._register_at)
        if self._outbox.waiting:
            due = min(due, self._report_at)
        if self._leaving == "kill":
            due = min(due, self._leave_by)
        elif not self._hand.holds:
            due = min(due, self._attach_at)
        return max(0.0, due - self._clock.monotonic())

    def _on_word(self, word: ear.Word) -> None:
        match word:
            case ear.Orders(orders):
                for order in orders:
                    self._on_order(order)
            case ear.Acknowledged(report, error):
                self._on_acknowledged(report, error)
            case ear.Over(ended):
                if (run := self._runs.get(ended.allocation)) is not None:
                    self._over(run, ended)
            case ear.Removed(workflow, error):
                self._dropping.discard(workflow)
                if error:
                    _log.warning("volumes of %s are still there: %s", workflow, error)
                else:
                    self._outbox.removed(workflow)
            case ear.Opened():
                self._recent = set()
            case ear.Closed(reason):
                _log.warning("no orders: %s", reason)
                self._register_later()
            case ear.Leave(mode):
                self._leaving = mode
                if mode == "kill":
                    self._hand.add(("quit", _KILL_GRACE_MS))
                    self._leave_by = self._clock.monotonic() + _KILL_WAIT_S
            case _:
                assert_never(word)

    def _on_time(self) -> None:
        now = self._clock.monotonic()
        if not self._hand.holds and self._leaving is None and now >= self._attach_at:
            self._attach_again(now)
        if self._register_at is not None and now >= self._register_at:
            self._register()
        if now < self._beat_at:
            return
        self._beat_at = now + self._heartbeat_s
        self._link.heartbeat(self._registration.node)
        self._hand.flush()
        self._runtime.look_again()
        for workflow in self._runs.quiet(now - _IDLE_WORKFLOW_S):
            self._retire(workflow)

    def _tell(self) -> None:
        self._hand.tell()
        now = self._clock.monotonic()
        if now >= self._report_at:
            report = self._outbox.take()
            if report is not None:
                # While much waits here to be run, nobody has to answer at once.
                self._report_at = now + (_GATHER_S if len(self._ahead) > _AHEAD_LOW else 0.0)
                self._link.report(report, self._ear.acknowledging(report))

    # Orders.

    def _on_order(self, order: Order) -> None:
        match order:
            case Start():
                self._start(order)
            case Task():
                self._remember(order)
            case Stop():
                self._stop(order)
            case DropVolumes(workflow):
                self._drop(workflow)
            case Sync():
                self._agree(order)
            case _:
                assert_never(order)

    def _agree(self, sync: Sync) -> None:
        """Make what is here what should be here."""
        for task in sync.tasks:
            self._remember(task)
        stops = {stop.allocation: stop for stop in sync.stops}
        listed = stops.keys() | {start.allocation for start in sync.starts}
        recent = self._recent or set()
        self._recent = None
        for run in self._runs:
            run.listed = run.allocation in listed
            if not run.listed and run.ended is not None:
                self._forget(run)
            elif not run.listed:
                self._stop(Stop(run.allocation, self._grace_ms(run)))
        for start in sync.starts:
            # What was acknowledged after the stream was asked for may still be in its `Sync`.
            if start.allocation not in recent and start.allocation not in stops:
                self._start(start)
        for stop in stops.values():
            if (known := self._runs.get(stop.allocation)) is not None:
                self._again(known)
                self._stop(stop)
            elif stop.allocation not in recent:
                # It never ran here, or nothing is known of it: all the same it must come to an end.
                run = self._runs.add(Run(stop.allocation, ""))
                self._over(run, Ended(stop.allocation, stop.outcome))
        for drop in sync.drops:
            self._drop(drop.workflow)

    def _remember(self, task: Task) -> None:
        if not self._tasks.remember(task):
            self._tasks.shrink({run.task for run in self._runs})

    def _start(self, start: Start) -> None:
        run = self._runs.get(start.allocation)
        if run is not None:
            self._again(run)
            return
        task = self._tasks.get(start.task)
        if task is None:
            self._register_later()
            return
        if self._leaving:
            return
        run = self._runs.add(Run(start.allocation, task.task))
        if task.kind != "job":
            self._side.perform(task, start.allocation)
            return
        if self._runtime.lacks_folder(task):
            self._spare_folder()
        before = self._runs.get(start.behind)
        if before is not None and before.held is not None:
            seat = self._seats.share(before.held.seat)
            self._ahead.add(start.allocation)
            self._outbox.behind(start.allocation, start.behind)
        else:
            seat = self._seats.take(task.cores, task.devices)
        try:
            messages, run.footprint = self._runtime.prepare(task, start, seat)
        except Refusal as error:
            self._seats.give_back(seat)
            ended = Ended(
                allocation=start.allocation,
                outcome="failed",
                exit_code=error.exit_code,
                error=str(error),
                started_at=self._clock.now(),
            )
            self._over(run, ended)
            return
        self._hand.add(*messages)

    def _spare_folder(self) -> None:
        """Hand on the empty folder of a quiet workflow, which costs less than making another."""
        for quiet in self._runs.lately_quiet():
            messages = self._runtime.spare(quiet)
            if messages is not None:
                self._hand.add(*messages)
                return

    def _stop(self, stop: Stop) -> None:
        run = self._runs.get(stop.allocation)
        if run is None or run.ended is not None:
            return
        run.outcome = run.outcome or stop.outcome
        if run.footprint is not None:
            self._hand.add(("stop", stop.allocation, stop.grace_ms, stop.outcome))

    def _drop(self, workflow: str) -> None:
        if workflow not in self._dropping:
            self._dropping.add(workflow)
            self._runs.known(workflow, self._clock.monotonic())
            self._side.drop_volumes(workflow)

    def _again(self, run: Run) -> None:
        """The server asks for something that is here: tell how it stands."""
        run.listed = True
        if run.ended is not None:
            self._outbox.ended(run.ended)
        elif run.started_at:
            self._outbox.began(run.allocation, run.started_at)

    # The keeper's news.

    def _on_keeper(self) -> None:
        heard = self._hand.hear()
        if heard is None:
            self._hand.let_go()
            return
        for allocation, started_at in heard.began:
            self._ahead.discard(allocation)
            run = self._runs.get(allocation)
            if run is not None and run.ended is None:
                self._began(run, started_at)
                self._outbox.began(allocation, started_at)
        for allocation, end in heard.ended:
            self._ahead.discard(allocation)
            run = self._runs.get(allocation)
            if run is None:
                self._hand.forget(allocation)
            else:
                self._ended(run, end)

    def _began(self, run: Run, started_at: int) -> None:
        if started_at and not run.started_at:
            run.started_at = started_at
            if self._outputs is not None and run.footprint is not None:
                self._outputs.watch(run.allocation)

    def _ended(self, run: Run, end: ChildEnd) -> None:
        footprint = run.footprint
        if footprint is None or run.ended is not None:
            return
        self._began(run, end.started_at)
        usage = self._runtime.measure(footprint)
        ended = endings.of_child(run.allocation, end, usage, footprint.memory)
        self._seats.give_back(footprint.seat)
        self._side.clear(footprint)
        if self._outputs is None or not end.started_at:
            self._over(run, ended)
        else:
            # The end is told when all output is where the server has it.
            self._outputs.finish(run.allocation, lambda: self._ear.say(ear.Over(ended)))

    def _over(self, run: Run, ended: Ended) -> None:
        if run.footprint is None and run.outcome and ended.outcome != run.outcome:
            ended = msgspec.structs.replace(ended, outcome=run.outcome)
        run.ended = ended
        if run.listed:
            self._outbox.ended(ended)
        elif run.listed is False:
            self._forget(run)

    def _forget(self, run: Run) -> None:
        self._runs.remove(run, self._clock.monotonic())
        self._outbox.passed(run.allocation)
        if run.footprint is not None:
            self._hand.forget(run.allocation)

    def _on_acknowledged(self, report: Report, error: BaseException | None) -> None:
        if error is None:
            self._back_off_s = _BACK_OFF_S[0]
            if not self._outbox.acknowledged(report):
                return
            for ended in report.ended:
                if self._recent is not None:
                    self._recent.add(ended.allocation)
                run = self._runs.get(ended.allocation)
                if run is not None and run.ended is not None:
                    self._forget(run)
            return
        _log.warning("a report did not arrive: %s", error)
        if isinstance(error, Refused):
            # The server sees this node otherwise: start again from what it wants.
            self._outbox.clear()
            self._register_later()
        else:
            self._outbox.failed(report)
            self._report_at = self._clock.monotonic() + self._backed_off()

    # Attaching and leaving.

    def _attach(self) -> None:
        keeper = KeeperClient(self._folder, self._clock)
        known = {one.allocation for one in keeper.known}
        changed = keeper.incarnation != self._registration.incarnation
        for run in self._runs:
            # What an older keeper ran is over: the server learns it from the new incarnation.
            # What a broken connection kept from this one is started again by the next `Sync`.
            if changed or (run.footprint is not None and run.allocation not in known):
                if run.held is not None:
                    self._seats.give_back(run.held.seat)
                    self._side.clear(run.held)
                self._runs.remove(run, self._clock.monotonic())
                self._outbox.passed(run.allocation)
        if changed:
            self._outbox.clear()
            self._registration = msgspec.structs.replace(
                self._registration, incarnation=keeper.incarnation
            )
        self._hand.take(keeper, changed)
        self._runtime.attached()
        if not known and not self._runs:
            self._side.remove(self._runtime.fresh())
        for one in keeper.known:
            self._adopt(one)
        self._register()

    def _attach_again(self, now: float) -> None:
        try:
            self._attach()
        except (KeeperError, OSError) as error:
            _log.error("no keeper: %s", error)
            self._attach_at = now + self._backed_off()

    def _adopt(self, known: Known) -> None:
        """Work that is under way. Of an earlier agent's, only a `Sync` tells whether it is
        wanted.
        """
        run = self._runs.get(known.allocation)
        if run is None:
            footprint = msgspec.convert(known.note, Footprint, strict=False)
            run = self._runs.add(Run(known.allocation, footprint.task))
            run.footprint, run.listed = footprint, None
            self._seats.claim(footprint.seat)
            self._runtime.adopt(footprint)
        if known.started_at:
            self._began(run, known.started_at)
        if known.end is not None:
            self._ended(run, known.end)

    def _register(self) -> None:
        self._register_at = None
        self._link.register(self._registration, self._ear)

    def _register_later(self) -> None:
        if self._register_at is None:
            self._register_at = self._clock.monotonic() + self._backed_off()

    def _backed_off(self) -> float:
        wait, self._back_off_s = self._back_off_s, min(2 * self._back_off_s, _BACK_OFF_S[1])
        return wait

    def _gone(self) -> bool:
        match self._leaving:
            case None:
                return False
            case "leave":
                return True
            case "drain":
                return not self._runs and not self._outbox
            case "kill":
                over = not self._hand.holds and not self._outbox
                return over or self._clock.monotonic() >= self._leave_by

    def _leave(self) -> None:
        if not self._runs:
            # Nothing to keep: the keeper goes too.
            for workflow in self._runs.quiet(inf):
                self._retire(workflow)
            self._hand.add(("quit", 0))
        self._hand.flush()
        self._hand.let_go()
        self._link.close()
        if self._outputs is not None:
            self._outputs.close()
        self._side.close()
        if not self._runs:
            self._runtime.close()

    def _retire(self, workflow: str) -> None:
        messages, scratch = self._runtime.retire(workflow)
        self._hand.add(*messages)
        if scratch is not None:
            self._side.remove(scratch)

    def _grace_ms(self, run: Run) -> int:
        task = self._tasks.get(run.task)
        return task.grace_ms if task is not None else _KILL_GRACE_MS
