"""Records as CloudEvents, what they belong to, and one line of text for each."""

from collections.abc import Iterator

import msgspec

from logyard_domain import codec, events
from logyard_domain.events import AnyEvent
from logyard_domain.records import Record
from logyard_projections.entities import OF_ENTITY, entity_of
from logyard_projections.instants import rfc3339
from logyard_projections.stages import ALLOCATIONS, place_of
from logyard_projections.streams import (
    ACTIVITY,
    OF_ALLOCATION,
    OF_NODE,
    SPAN_BITS,
    activity_key,
    activity_prefix,
    workflow_of,
)
from logyard_projections.view import View
from logyard_projections.workflows import WORKFLOWS

KNOWN_MAX = 10_000


class CloudEvent(msgspec.Struct, frozen=True, omit_defaults=True):
    """A record as CloudEvents 1.0. `data` is the event as on the log, its tag included.

    `logyardmessage` is what happened in a line for people, and `logyardabout` to what; only where
    they were asked for. Instants in it are in full, such as ``2026-11-30T14:40:00.000Z``.
    """

    specversion: str
    id: str
    source: str
    type: str
    subject: str
    time: str
    datacontenttype: str
    data: msgspec.Raw
    logyardposition: int
    logyardactor: str
    logyardcause: str
    logyardchain: str
    logyardabout: str = ""
    logyardmessage: str = ""


def cloud_event(record: Record, about: str = "", message: str = "") -> CloudEvent:
    """The record for the world outside, with what it says to people where that is given."""
    return CloudEvent(
        specversion="1.0",
        id=str(record.position),
        source=f"/clusters/{record.cluster}",
        type=f"logyard.{codec.tag_of(record.event)}",
        subject=subject_of(record.event),
        time=rfc3339(record.at),
        datacontenttype="application/json",
        data=msgspec.Raw(codec.encode_event(record.event)),
        logyardposition=record.position,
        logyardactor=record.actor,
        logyardcause=record.cause,
        logyardchain=record.chain,
        logyardabout=about,
        logyardmessage=message,
    )


def subject_of(event: AnyEvent) -> str:
    """What the event is about: an allocation, ``WORKFLOW/STAGE``, a workflow, a node, a shape,
    ``organization/O``, ``group/O/G``, ``user/U``, or the ``cluster``.
    """
    kind = type(event)
    if kind in OF_ALLOCATION:
        return str(getattr(event, "allocation", ""))
    if kind in OF_NODE:
        return str(getattr(event, "node", ""))
    workflow = workflow_of(event)
    if workflow:
        stage = "" if isinstance(event, events.WorkflowFailed) else getattr(event, "stage", "")
        return f"{workflow}/{stage}" if stage else workflow
    if isinstance(event, OF_ENTITY):
        return entity_of(event).replace(":", "/", 1)
    shape = getattr(event, "shape", 0)
    return f"shape/{shape}" if shape else "cluster"


class Belonging(msgspec.Struct, frozen=True):
    """What a record belongs to; empty where it belongs to none."""

    workflow: str
    group: str
    node: str


class Belongings:
    """Tells what records belong to: learns from those that it sees, and asks a view for older ones.

    One for each reader of a stream. It forgets the oldest of what it learned at a bound.
    """

    def __init__(self) -> None:
        self._groups: dict[str, str] = {}
        self._nodes: dict[str, str] = {}

    def of(self, record: Record, view: View) -> Belonging:
        """What the record belongs to."""
        event = record.event
        workflow = workflow_of(event)
        if isinstance(event, events.WorkflowSubmitted):
            _learn(self._groups, workflow, event.group)
        if isinstance(event, events.AllocationPlaced):
            _learn(self._nodes, event.allocation, event.node)
        if workflow:
            group = self._group(workflow, view)
        else:
            group = getattr(event, "group", "")
        return Belonging(workflow, group, self._node(event, view))

    def _group(self, workflow: str, view: View) -> str:
        if workflow not in self._groups:
            row = view.get(WORKFLOWS, workflow)
            if row is None:
                return ""
            _learn(self._groups, workflow, row.group)
        return self._groups[workflow]

    def _node(self, event: AnyEvent, view: View) -> str:
        node: str = getattr(event, "node", "")
        allocation: str = getattr(event, "allocation", "")
        if node or not allocation:
            return node
        if allocation not in self._nodes:
            row = view.get(ALLOCATIONS, place_of(allocation).key)
            if row is None or not row.node:
                return ""
            _learn(self._nodes, allocation, row.node)
        return self._nodes[allocation]


def _learn(known: dict[str, str], key: str, value: str) -> None:
    known[key] = value
    if len(known) > KNOWN_MAX:
        del known[next(iter(known))]


def positions_of(
    view: View, workflow: str, after: int = 0, limit: int = 1000, newest_first: bool = False
) -> list[int]:
    """Positions of the records of a workflow after `after`, at most `limit`, in order.

    With `newest_first` those before it (0: all), the latest first.
    """
    found: list[int] = []
    for position in _positions(view, workflow, after, newest_first):
        if len(found) == limit:
            break
        found.append(position)
    return found


def _positions(view: View, workflow: str, after: int, newest_first: bool) -> Iterator[int]:
    prefix, token = activity_prefix(workflow), ""
    most = activity_key(workflow, after >> SPAN_BITS) if newest_first and after else ""
    while True:
        page = view.scan(
            ACTIVITY, prefix=prefix, most=most, descending=newest_first, after=token, limit=100
        )
        for row in page.rows:
            bits = int.from_bytes(row.positions, "little")
            numbers = [row.start + n for n in range(bits.bit_length()) if bits >> n & 1]
            for position in reversed(numbers) if newest_first else numbers:
                if not after or (position < after if newest_first else position > after):
                    yield position
        token = page.token
        if not token:
            return
