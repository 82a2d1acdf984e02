"""Structured logs: one JSON object a line on stderr, or lines for people."""

import logging
import sys
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec

Format = Literal["json", "human"]
Level = Literal["debug", "info", "warning", "error"]

_STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "color_message"}


def instant(seconds: float) -> str:
    """The instant in RFC 3339, UTC, with milliseconds."""
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class JsonLines(logging.Formatter):
    """A record as one JSON object; what was given as `extra` becomes members of it."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": instant(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line.update((key, value) for key, value in record.__dict__.items() if key not in _STANDARD)
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line, enc_hook=str).decode()


class ForPeople(logging.Formatter):
    """A record as one line, with what was given as `extra` at its end."""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).astimezone().strftime("%H:%M:%S.%f")[:-3]
        extra = "".join(
            f" {key}={value}" for key, value in record.__dict__.items() if key not in _STANDARD
        )
        text = f"{at} {record.levelname.lower():<7} {record.name}: {record.getMessage()}{extra}"
        return f"{text}\n{self.formatException(record.exc_info)}" if record.exc_info else text


def set_up(level: Level, form: Format) -> None:
    """Send the logs of the whole process to stderr. Chatty libraries speak from warnings on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if form == "json" else ForPeople())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "eventsourcing", "asyncio"):
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))
