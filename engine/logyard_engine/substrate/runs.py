"""An allocation on a node, as the agent sees it."""

from logyard_domain.commands import Ended
from logyard_engine.substrate.runtime import Footprint


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
