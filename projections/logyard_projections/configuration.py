"""The history of the configuration: every revision, who set it, and what it changed."""

from functools import lru_cache

import msgspec

from logyard_domain.configuration import DEFAULTS, Value
from logyard_domain.events import ConfigSet
from logyard_domain.expressions import Expression
from logyard_domain.records import Record
from logyard_projections.fold import Projection
from logyard_projections.rows import Rows
from logyard_projections.tables import Table

LATEST_KEY = "latest"


class Change(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A setting, before and after. What was never set had its default before."""

    key: str
    before: Value
    after: Value


class Revision(msgspec.Struct, array_like=True, gc=False):
    """A configuration as a whole: in force from instant `at` (ms), position `position`, until the
    next one. `formulas` are the settings that are expressions, where they are not the default.
    """

    revision: int
    at: int
    position: int
    actor: str
    cause: str
    values: dict[str, Value]
    formulas: dict[str, Expression]
    changes: tuple[Change, ...]


REVISIONS = Table("revisions", Revision)
LATEST = Table("latest_revision", Revision)


@lru_cache(maxsize=64)
def revision_key(revision: int) -> str:
    return f"{revision:010d}"


def in_force(rows: Rows) -> dict[str, Value]:
    """The values in force, to be read only. Settings that were never set are left out."""
    latest = rows.get(LATEST, LATEST_KEY)
    return latest.values if latest is not None else {}


def _set(rows: Rows, record: Record, event: ConfigSet) -> None:
    before = DEFAULTS | in_force(rows)
    revision = Revision(
        event.revision,
        record.at,
        record.position,
        record.actor,
        record.cause,
        event.values,
        event.formulas,
        tuple(
            Change(key, before.get(key, value), value)
            for key, value in sorted(event.values.items())
            if before.get(key) != value
        ),
    )
    rows.put(REVISIONS, revision_key(event.revision), revision)
    rows.put(LATEST, LATEST_KEY, msgspec.structs.replace(revision))


PROJECTION = Projection("configuration", 1, (REVISIONS, LATEST), {ConfigSet: _set})
