"""Which lane a stage waits in."""

from logyard_domain.world import Lane, LaneKey, Stage, World


def enqueue(world: World, stage: Stage) -> None:
    """Queue the stage where it belongs, unless it is queued or has nothing to place."""
    if stage.queued or not stage.open:
        return
    lane = stage.lane
    if lane is None:
        lane = stage.lane = _lane(world, stage)
    # Lanes in which nothing waits are forgotten, and may have been made anew by another stage.
    lane = stage.lane = world.lanes.setdefault(lane.key, lane)
    lane.push(stage)


def relane(world: World) -> None:
    """Lay the lanes out anew: what distinguishes them has changed."""
    world.lanes = {}
    for workflow in world.workflows.values():
        for stage in workflow.stages.values():
            stage.queued, stage.lane = False, None
            if stage.shape:
                enqueue(world, stage)


def _lane(world: World, stage: Stage) -> Lane:
    workflow = stage.workflow
    key = LaneKey(
        stage.shape,
        workflow.organization,
        workflow.group,
        workflow.user,
        workflow.priority,
        stage.limit_ms,
        0 if world.rising else workflow.position,
    )
    return world.lanes.get(key) or Lane(key)
