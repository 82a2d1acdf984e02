"""What a log looks like on one page: who had which room when, and what waited meanwhile for what.

A fold of records, in the order of the log, into one frozen `Picture`; `Painter` is the way in.
Unlike the other projections it has no rows and no questions: it looks at a span of time once.
"""

from logyard_projections.picture.painter import Painter
from logyard_projections.picture.picture import Picture

__all__ = ["Painter", "Picture"]
