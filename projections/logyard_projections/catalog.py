"""All projections, in the order in which a record goes through them.

A fold may read the rows of the projections before it, so the order is part of what they mean.
"""

from logyard_projections import (
    configuration,
    entities,
    nodes,
    promises,
    queue,
    shapes,
    stages,
    stats,
    streams,
    why,
    workflows,
)
from logyard_projections.fold import Projection

PROJECTIONS: tuple[Projection, ...] = (
    shapes.PROJECTION,
    stages.PROJECTION,
    workflows.PROJECTION,
    configuration.PROJECTION,
    entities.PROJECTION,
    queue.PROJECTION,
    nodes.PROJECTION,
    promises.PROJECTION,
    why.PROJECTION,
    stats.PROJECTION,
    streams.PROJECTION,
)
