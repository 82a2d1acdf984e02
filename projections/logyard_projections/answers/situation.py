"""What all lines of one answer have in common, looked up once."""

from functools import cached_property

from logyard_domain.configuration import Value
from logyard_domain.resources import Request
from logyard_projections.answers.forecasts import promises_in_force
from logyard_projections.answers.ranking import Ranker
from logyard_projections.answers.rooms import Rooms
from logyard_projections.nodes import NODES, Node, misfit_of
from logyard_projections.priorities import setting
from logyard_projections.promises import Promise
from logyard_projections.shapes import SHAPES, Shape, shape_key
from logyard_projections.view import View


class Situation:
    """The view at the instant `at`, with the priorities, promises and rooms of that moment."""

    def __init__(self, view: View, at: int) -> None:
        self.view = view
        self.at = at
        self.ranker = Ranker(view, at)

    @cached_property
    def promises(self) -> tuple[Promise, ...]:
        """All that are in force."""
        return promises_in_force(self.view)

    @cached_property
    def rooms(self) -> Rooms:
        """What is free on the nodes."""
        return Rooms(self.nodes)

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """All nodes, by name."""
        found: list[Node] = []
        token = ""
        while True:
            page = self.view.scan(NODES, after=token)
            found += page.rows
            token = page.token
            if not token:
                return tuple(found)

    def setting(self, key: str) -> Value:
        """A setting of the configuration in force."""
        return setting(self.ranker, key)

    def shape(self, number: int) -> Shape | None:
        """A shape by number; none for 0."""
        return self.ranker.get(SHAPES, shape_key(number)) if number else None

    def promised_to(self, shape: int) -> Promise | None:
        """The promise to the first in line that has this shape."""
        return next((one for one in self.promises if one.shape == shape), None)

    def promise_of(self, workflow: str, stage: str) -> Promise | None:
        """The promise to the next rank of a stage."""
        return next(
            (one for one in self.promises if (one.workflow, one.stage) == (workflow, stage)), None
        )

    def in_line_before(self, workflow: str, stage: str, request: Request) -> Promise | None:
        """The promise to another that could use the same nodes."""
        for promise in self.promises:
            shape = self.shape(promise.shape)
            if (promise.workflow, promise.stage) != (workflow, stage) and shape is not None:
                for name in promise.chunks:
                    node = self.ranker.get(NODES, name)
                    if node is not None and not misfit_of(node, request):
                        return promise
        return None
