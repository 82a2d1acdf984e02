"""Events as lines. What an event says is told by the server (or, of a log that lies here, by the
same words); this puts it on a line, with instants in the reader's own time.
"""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from logyard_api.cli.units import clock, count, instant

if TYPE_CHECKING:
    from logyard_domain.records import Record

SEEN_MAX = 1_000
"""Records that are remembered, for sentences that tell of earlier ones."""
_INSTANT = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")


def workflow_of(event: Mapping[str, Any]) -> str:
    """The workflow that an event belongs to; empty where it belongs to none."""
    data: Mapping[str, Any] = event.get("data", {})
    return str(data.get("workflow") or str(data.get("allocation", "")).partition("/")[0])


def local(sentence: str) -> str:
    """The sentence with its instants (RFC 3339) as local time of day."""
    return _INSTANT.sub(lambda found: clock(found[0], "seconds"), sentence)


def line(event: Mapping[str, Any], workflows: bool) -> str:
    """An event as one line: time, position, whom it is about, what it says.

    `workflows` puts the workflow before what it is about, for streams of more than one.
    """
    about = str(event.get("logyardabout") or event.get("subject") or "cluster")
    sentence = event.get("logyardmessage") or str(event["type"]).removeprefix("logyard.")
    owner = workflow_of(event)
    if workflows and owner:
        about = owner if about == "workflow" else f"{owner} {about}"
    at = instant(str(event["time"])).astimezone().time().isoformat("milliseconds")
    position = count(int(event["logyardposition"]))
    return f"{at}  {position:>7}  {about:<{28 if workflows else 12}}  {local(str(sentence))}"


class Stored:
    """Turns records as they are stored, in order, into events of the form of the stream."""

    def __init__(self) -> None:
        self._seen: dict[int, Record] = {}

    def event(self, position: int, state: bytes) -> dict[str, Any]:
        """The record with its sentence. Raises codec.Damaged."""
        from logyard_projections.answers.sentences import about, text
        from logyard_projections.feed import Unread, read

        record = read(position, state)
        if isinstance(record, Unread):
            return {
                "type": record.tag,
                "time": datetime.fromtimestamp(_at(state) / 1000, UTC).isoformat(),
                "logyardposition": position,
                "logyardmessage": f"{record.tag} (not known to this release of the command)",
            }
        self._seen[position] = record
        self._seen.pop(position - SEEN_MAX, None)
        event = record.event
        return {
            "type": "",
            "data": {
                "workflow": getattr(event, "workflow", ""),
                "allocation": getattr(event, "allocation", ""),
            },
            "time": datetime.fromtimestamp(record.at / 1000, UTC).isoformat(),
            "logyardposition": position,
            "logyardabout": about(event),
            "logyardmessage": text(record, recall=self._seen.get),
        }


def _at(state: bytes) -> int:
    return int(json.loads(state)["at"])
