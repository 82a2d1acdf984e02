"""The allocations on a node, as the agent sees them."""

from collections import Counter
from collections.abc import Iterator
from itertools import islice

from logyard_domain.commands import Ended
from logyard_engine.substrate.runtime import Footprint

_LATELY = 8


class Run:
    """From the start of an allocation to the acknowledgement of its end.

    `footprint` is None for what the agent does itself; `outcome` is what a stop asked for;
    `listed` tells whether the server wants to hear of it.
    """

    __slots__ = ("allocation", "ended", "footprint", "listed", "outcome", "started_at", "task")

    def __init__(self, allocation: str, task: str) -> None:
        self.allocation = allocation
        self.task = task
        self.footprint: Footprint | None = None
        self.started_at = 0
        self.ended: Ended | None = None
        self.outcome = ""
        self.listed: bool | None = True

    @property
    def workflow(self) -> str:
        return self.task.partition("/")[0]

    @property
    def held(self) -> Footprint | None:
        """What it holds of the node's seats, while it is a job that has not ended."""
        return self.footprint if self.ended is None else None


class Runs:
    """The runs of a node by allocation, and which workflows have none any more, since when."""

    def __init__(self) -> None:
        self._runs: dict[str, Run] = {}
        self._live: Counter[str] = Counter()
        self._quiet: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._runs)

    def __iter__(self) -> Iterator[Run]:
        """All of them; they may be removed meanwhile."""
        return iter(list(self._runs.values()))

    def get(self, allocation: str) -> Run | None:
        return self._runs.get(allocation)

    def add(self, run: Run) -> Run:
        self._runs[run.allocation] = run
        if run.workflow:
            self._live[run.workflow] += 1
            self._quiet.pop(run.workflow, None)
        return run

    def remove(self, run: Run, now_s: float) -> None:
        if self._runs.pop(run.allocation, None) is None or not run.workflow:
            return
        self._live[run.workflow] -= 1
        if not self._live[run.workflow]:
            del self._live[run.workflow]
            self._quiet[run.workflow] = now_s

    def known(self, workflow: str, now_s: float) -> None:
        """Something of this workflow may be here, although nothing of it ran."""
        if workflow not in self._live:
            self._quiet.setdefault(workflow, now_s)

    def quiet(self, until_s: float) -> list[str]:
        """Workflows that have had no run since before `until_s`, the longest first; they are not
        named again.
        """
        found: list[str] = []
        for workflow, since in self._quiet.items():
            if since >= until_s:
                break
            found.append(workflow)
        for workflow in found:
            del self._quiet[workflow]
        return found

    def lately_quiet(self) -> Iterator[str]:
        """Some workflows without a run, the one whose last run went last first."""
        return islice(reversed(self._quiet), _LATELY)
