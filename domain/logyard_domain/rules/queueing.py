"""Which lane a stage waits in, and that every lane has something that waits."""

from logyard_domain.world import Lane, LaneKey, Stage, World

EMPTIED_MAX = 20_000
"""Of more lanes nobody keeps in mind that they were forgotten; a replay makes no ticks."""


def enqueue(world: World, stage: Stage) -> None:
    """Queue the stage where it belongs, unless it is queued or has nothing to place."""
    if stage.queued or not stage.open:
        return
    lane = stage.lane
    if lane is None:
        lane = stage.lane = _lane(world, stage)
    if not lane.listed:
        # Lanes in which nothing waits are forgotten, and may have been made anew by another stage.
        found = world.lanes.setdefault(lane.key, lane)
        if found is lane:
            lane.listed = True
            world.shapes[lane.key.shape].lanes += 1
        else:
            lane = stage.lane = found
    lane.push(stage)
    world.dirty[lane] = None


def noticed(world: World, stage: Stage) -> None:
    """The stage may have closed, or another of its ranks comes first: see to its lane."""
    lane = stage.lane
    if lane is None or not lane.listed:
        return
    if lane.head() is None:
        del world.lanes[lane.key]
        lane.listed = False
        world.dirty.pop(lane, None)
        world.shapes[lane.key.shape].lanes -= 1
        world.emptied[lane] = None
        if len(world.emptied) > EMPTIED_MAX:
            world.emptied = {}
            world.lane_set += 1
    else:
        world.dirty[lane] = None


def relane(world: World) -> None:
    """Lay the lanes out anew: what distinguishes them has changed."""
    for lane in world.lanes.values():
        lane.listed = False
    world.lanes = {}
    world.dirty = {}
    world.emptied = {}
    world.lane_set += 1
    for shape in world.shapes.values():
        shape.lanes = 0
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
