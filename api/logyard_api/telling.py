"""Records as the events of a stream, with a sentence for people where the listener wants it."""

from collections.abc import Sequence
from typing import Protocol

from logyard_api.tail import Read
from logyard_api.yard import SEEN_S, Yard
from logyard_domain.records import Record
from logyard_projections.answers.sentences import Recall, about, text_for
from logyard_projections.answers.streams import CloudEvent, cloud_event
from logyard_projections.view import View
from logyard_projections.workflows import WORKFLOWS


class Wish(Protocol):
    """What a listener wants."""

    @property
    def sentences(self) -> bool: ...

    @property
    def workflow(self) -> str | None: ...


class Telling:
    """Makes events of records that are seen in order. One for each listener."""

    def __init__(self, yard: Yard, wish: Wish) -> None:
        self._yard = yard
        self._wish = wish

    async def events(self, records: Sequence[Record]) -> list[CloudEvent]:
        """The records as events."""
        if not self._wish.sentences or not records:
            return [cloud_event(record) for record in records]
        # A sentence tells what was so at its position, which the views must have seen.
        await self._yard.views.reach(records[-1].position, SEEN_S)
        recall = recalling(self._yard.read, records)

        def told(view: View) -> list[CloudEvent]:
            workflow = view.get(WORKFLOWS, self._wish.workflow) if self._wish.workflow else None
            return [
                cloud_event(record, about(record.event), text_for(workflow, record, view, recall))
                for record in records
            ]

        return await self._yard.views.ask(told)


def recalling(read: Read, records: Sequence[Record]) -> Recall:
    """Looks up single records: among those at hand, else on the log."""
    near = {int(record.position): record for record in records}

    def recall(position: int) -> Record | None:
        found = near.get(position)
        if found is None and position > 0:
            found = next(iter(read(position - 1, 1)), None)
        return found

    return recall
