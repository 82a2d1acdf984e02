"""The server's side of a node without a server: what is wanted, and what was reported, in memory.

For trying a node alone: tests and measurements use it where the engine would be.
"""

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future

from logyard_domain.commands import Ended, RegisterNode, Report
from logyard_domain.work import DropVolumes, Order, Start, Stop, Sync, Task

WAIT_S = 30.0


class Desk:
    """Wants work, hears of it. `away` makes it refuse everything, as a server that is down.

    `offer` and `beat` are what `link.LocalLink` wants; `connect` takes the node's `deliver`.
    """

    def __init__(self) -> None:
        self.away = False
        self.registrations: list[RegisterNode] = []
        self.reports: list[Report] = []
        self.beats = 0
        self.began: dict[str, int] = {}
        self.ends: list[Ended] = []
        self.removed: list[str] = []
        self._tasks: dict[str, Task] = {}
        self._wanted: dict[str, Start] = {}
        self._stops: dict[str, Stop] = {}
        self._drops: dict[str, DropVolumes] = {}
        self._hand_over: Callable[[Sequence[Order]], None] | None = None
        self._changed = threading.Condition(threading.RLock())

    def connect(self, deliver: Callable[[Sequence[Order]], None] | None) -> None:
        """Orders go here from now on."""
        self._hand_over = deliver

    def offer(self, command: RegisterNode | Report) -> "Future[object]":
        """Take a command at once, as if it were durable."""
        if self.away:
            raise ConnectionError("the desk is away")
        with self._changed:
            if isinstance(command, RegisterNode):
                self.registrations.append(command)
                self._deliver([self.sync()])
            else:
                self._note(command)
            self._changed.notify_all()
        done: Future[object] = Future()
        done.set_result(None)
        return done

    def beat(self, node: str) -> None:
        """A node lives."""
        with self._changed:
            self.beats += 1
            self._changed.notify_all()

    def sync(self) -> Sync:
        """Everything that is wanted now."""
        with self._changed:
            return Sync(
                tasks=tuple(self._tasks.values()),
                starts=tuple(self._wanted.values()),
                stops=tuple(self._stops.values()),
                drops=tuple(self._drops.values()),
            )

    def want(self, task: Task, ranks: Iterable[int] = (0,), attempt: int = 1) -> list[str]:
        """Ask for ranks of a task; the allocations' names."""
        starts = [Start(f"{task.task}/{rank}#{attempt}", task.task, rank) for rank in ranks]
        with self._changed:
            self._tasks[task.task] = task
            self._wanted.update({start.allocation: start for start in starts})
            self._deliver([task, *starts])
        return [start.allocation for start in starts]

    def stop(self, stop: Stop) -> None:
        """Ask for a stop."""
        with self._changed:
            self._stops[stop.allocation] = stop
            self._deliver([stop])

    def drop_volumes(self, workflow: str) -> None:
        """Ask for the removal of a workflow's volumes."""
        with self._changed:
            self._drops[workflow] = DropVolumes(workflow)
            self._deliver([DropVolumes(workflow)])

    def unwant(self, allocation: str) -> None:
        """No longer want it, without a word to the node: the next `Sync` tells."""
        with self._changed:
            self._wanted.pop(allocation, None)

    def wait(self, allocations: Iterable[str], timeout_s: float = WAIT_S) -> list[Ended]:
        """Wait for these ends. Raises TimeoutError naming what is missing."""
        wanted = list(allocations)
        with self._changed:
            self.wait_until(
                lambda: not set(wanted) - {one.allocation for one in self.ends}, timeout_s
            )
            ends = {one.allocation: one for one in self.ends}
            return [ends[one] for one in wanted]

    def wait_until(self, true: Callable[[], bool], timeout_s: float = WAIT_S) -> None:
        """Wait for something that a report, a registration or a heartbeat makes true."""
        with self._changed:
            if not self._changed.wait_for(true, timeout_s):
                missing = sorted(self._wanted)
                raise TimeoutError(f"still waiting after {timeout_s} s; running: {missing[:5]}")

    def _told(self, allocations: list[str]) -> bool:
        return not set(allocations) - {one.allocation for one in self.ends}

    def _deliver(self, orders: list[Order]) -> None:
        if self._hand_over is not None and not self.away:
            self._hand_over(orders)

    def _note(self, report: Report) -> None:
        self.reports.append(report)
        for began in report.began:
            self.began[began.allocation] = began.started_at
        for ended in report.ended:
            self.ends.append(ended)
            self._wanted.pop(ended.allocation, None)
            self._stops.pop(ended.allocation, None)
        for workflow in report.volumes_removed:
            self.removed.append(workflow)
            self._drops.pop(workflow, None)
