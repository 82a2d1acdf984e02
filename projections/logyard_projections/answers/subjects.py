"""What a name given to `why` is about."""

from logyard_projections.answers.stages import stages_of
from logyard_projections.stages import (
    ALLOCATIONS,
    OVER,
    STAGES,
    Allocation,
    Stage,
    allocation_key,
    place_of,
    stage_key,
)
from logyard_projections.view import View


def find(view: View, name: str) -> tuple[Stage, int, Allocation | None] | None:
    """Stage, rank and attempt (None: never placed) that a name is about."""
    if "#" in name:
        place = place_of(name)
        stage = view.get(STAGES, place.stage_key)
        if stage is None or not stage.first <= place.rank <= stage.last:
            return None
        allocation = view.get(ALLOCATIONS, place.key)
        waits = place.attempt == 1 and place.rank >= stage.unplaced
        return (stage, place.rank, allocation) if allocation is not None or waits else None
    parts = name.split("/")
    if len(parts) > 3 or not all(parts):
        raise ValueError(
            f"{name!r} names nothing that can be explained; write WORKFLOW, WORKFLOW/STAGE, "
            "WORKFLOW/STAGE/RANK or WORKFLOW/STAGE/RANK#ATTEMPT"
        )
    if len(parts) == 1:
        stage = _telling_stage(view, name)
    else:
        stage = view.get(STAGES, stage_key(parts[0], parts[1]))
    if stage is None:
        return None
    if len(parts) < 3:
        return telling_rank(view, stage)
    if not (parts[2].isascii() and parts[2].isdigit()):
        raise ValueError(f"{name!r}: {parts[2]!r} is no rank; write a number")
    rank = int(parts[2])
    if not stage.first <= rank <= stage.last:
        return None
    return stage, rank, _last_attempt(view, stage, rank)


def _telling_stage(view: View, workflow: str) -> Stage | None:
    """The stage that says most: one that waits, else runs, else comes, else failed."""
    stages = list(stages_of(view, workflow))
    for stage in stages:
        if stage.waiting + stage.delayed:
            return stage
    for stage in stages:
        if stage.inflight:
            return stage
    for status in ("waiting", "failed"):
        for stage in stages:
            if stage.status == status:
                return stage
    return stages[-1] if stages else None


def telling_rank(view: View, stage: Stage) -> tuple[Stage, int, Allocation | None]:
    """The rank of a stage that waits first, else its last attempt that is known."""
    again = view.scan(
        ALLOCATIONS, where={"again": stage_key(stage.workflow, stage.name)}, limit=1
    ).rows
    if again and stage.status not in OVER:
        return stage, again[0].rank, again[0]
    if stage.unplaced <= stage.last:
        return stage, stage.unplaced, None
    prefix = f"{stage.workflow}/{stage.name}/"
    token = ""
    page = view.scan(ALLOCATIONS, prefix=prefix, descending=True, after=token, limit=100)
    chosen = next((one for one in page.rows if one.state != "ended"), None)
    chosen = chosen or next((one for one in page.rows if one.outcome != "finished"), page.rows[0])
    return stage, chosen.rank, chosen


def _last_attempt(view: View, stage: Stage, rank: int) -> Allocation | None:
    prefix = allocation_key(stage.workflow, stage.name, rank, 0).partition("#")[0] + "#"
    found = view.scan(ALLOCATIONS, prefix=prefix, descending=True, limit=1).rows
    return found[0] if found else None
