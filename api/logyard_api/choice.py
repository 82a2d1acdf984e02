"""Which events a listener wants."""

import msgspec

from logyard_domain.codec import tag_of
from logyard_domain.records import Record
from logyard_projections.answers.entities import concerns
from logyard_projections.answers.streams import Belongings
from logyard_projections.view import View
from logyard_projections.workflows import WORKFLOWS

TYPE_PREFIX = "logyard."


class Choice(msgspec.Struct, frozen=True):
    """Which events a listener wants; empty means all, several fields intersect.

    `types` are prefixes of tags, with or without ``logyard.``.
    """

    workflow: str = ""
    group: str = ""
    node: str = ""
    types: tuple[str, ...] = ()

    @property
    def everything(self) -> bool:
        """Whether nothing is left out."""
        return not (self.workflow or self.group or self.node or self.types)


class Sieve:
    """Applies a choice to records that are seen in order. One for each listener."""

    def __init__(self, choice: Choice) -> None:
        self._choice = choice
        self._types = tuple(kind.removeprefix(TYPE_PREFIX) for kind in choice.types)
        self._belongings = Belongings()

    @property
    def by_type(self) -> bool:
        """Whether the type of an event alone decides, so that no view need be asked."""
        return not (self._choice.workflow or self._choice.group or self._choice.node)

    def right_type(self, record: Record) -> bool:
        """Whether the listener chose events of this type."""
        return not self._types or tag_of(record.event).startswith(self._types)

    def wants(self, record: Record, view: View) -> bool:
        """Whether the listener chose this record. `view` knows what earlier records said."""
        choice = self._choice
        if not self.by_type:
            belongs = self._belongings.of(record, view)
            if choice.workflow and belongs.workflow != choice.workflow:
                row = view.get(WORKFLOWS, choice.workflow)
                if row is None or not concerns(record.event, record.at, row):
                    return False
            if choice.group and belongs.group != choice.group:
                return False
            if choice.node and belongs.node != choice.node:
                return False
        return self.right_type(record)
