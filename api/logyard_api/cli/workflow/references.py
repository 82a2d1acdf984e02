"""What people write for a workflow, a stage, a rank: `wf-9c0d`, `wf-9c0d/train`, `.../17#2`."""

from typing import NamedTuple

from logyard_api.cli.client import segment
from logyard_api.cli.outcomes import USAGE, Trouble


class Reference(NamedTuple):
    """A workflow and, where they are named, its stage, rank (-1: not named) and attempt (0)."""

    workflow: str
    stage: str = ""
    rank: int = -1
    attempt: int = 0

    @property
    def path(self) -> str:
        """The workflow's resource."""
        return f"/workflows/{segment(self.workflow)}"

    @property
    def allocation(self) -> str:
        """Stage, rank and attempt as far as they are named: `render`, `render/17`, ..."""
        text = self.stage
        if self.rank >= 0:
            text += f"/{self.rank}"
        return text + (f"#{self.attempt}" if self.attempt else "")

    @property
    def text(self) -> str:
        """The whole reference as it can be written again."""
        return f"{self.workflow}/{self.allocation}" if self.stage else self.workflow


def parse(text: str, stage: str | None = None, rank: int | None = None) -> Reference:
    """The reference in `text`, completed by a stage and rank that were named apart.

    Raises Trouble when it is none.
    """
    workflow, within, rest = text.partition("/")
    named, slash, tail = rest.partition("/")
    number, mark, attempt = tail.partition("#")
    numbers_well = (not slash or number.isdigit()) and (not mark or attempt.isdigit())
    if not workflow or (within and not named) or not numbers_well:
        raise Trouble(
            f"{text!r} names nothing; write WORKFLOW, WORKFLOW/STAGE, WORKFLOW/STAGE/RANK or"
            " WORKFLOW/STAGE/RANK#ATTEMPT, for instance wf-3f8mk2qa7c/render/17",
            USAGE,
        )
    if stage and named and stage != named:
        raise Trouble(f"two stages are named: {named!r} in {text!r}, and {stage!r}", USAGE)
    found = int(number) if number else -1
    return Reference(
        workflow,
        stage or named,
        rank if rank is not None else found,
        int(attempt) if attempt else 0,
    )
