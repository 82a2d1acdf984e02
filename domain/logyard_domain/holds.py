"""Why a shape waits. A hold names what is missing, never a number that moves by itself."""

import msgspec


class NoNodes(msgspec.Struct, frozen=True, tag="no_nodes"):
    """The cluster has no node that is up."""


class NeverFits(msgspec.Struct, frozen=True, tag="never_fits"):
    """Parked: no node could hold it even if it were empty. Blocks nobody.

    `misfits` are the causes over all nodes, sorted: ``annotation KEY=VALUE``, ``device NAME``,
    ``feature NAME``, ``storage``, ``cores``, ``memory``, ``devices NAME``.
    """

    misfits: tuple[str, ...]


class NodesBusy(msgspec.Struct, frozen=True, tag="nodes_busy"):
    """Eligible nodes are up, and none has enough free now that is not promised to others. How much
    is short, and to whom it is promised, moves by itself: ask a view.
    """


class NodesClosed(msgspec.Struct, frozen=True, tag="nodes_closed"):
    """Nodes that could hold it are cordoned, draining or lost; it waits until someone acts."""


class BehindHigher(msgspec.Struct, frozen=True, tag="behind_higher"):
    """It would fit now, but it would delay what is first in line for the same nodes, which has
    this shape.

    Older logs have it. The scheduler records `NodesBusy` for both now, since which of them it is
    changes with every promise: a view tells them apart when it is asked.
    """

    shape: int


class NotEvaluated(msgspec.Struct, frozen=True, tag="not_evaluated"):
    """The last ticks reached their limit before they came to it; the next ones will."""


Hold = NoNodes | NeverFits | NodesBusy | NodesClosed | BehindHigher | NotEvaluated
