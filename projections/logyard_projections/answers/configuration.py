"""Answers about the configuration: what is in force, since when, and how it came to be so."""

from typing import Any

import msgspec

from logyard_domain.configuration import DEFAULTS, SETTINGS, Setting, Value
from logyard_domain.quantities import format_duration
from logyard_projections.answers.asking import page_size
from logyard_projections.configuration import (
    LATEST,
    LATEST_KEY,
    REVISIONS,
    Change,
    Revision,
    revision_key,
)
from logyard_projections.instants import rfc3339
from logyard_projections.view import View

MS = "(ms)"


class SettingAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """A setting: `value` as decisions use it and `text` for people (durations as ``30s``).

    `changed` tells that it is not the default; `unit` is ``ms`` for lengths of time.
    """

    key: str
    value: Value
    text: str
    default: Value
    changed: bool
    unit: str
    least: float | None
    most: float | None
    meaning: str


class ChangeAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """A setting that a revision changed, from `before` to `after`; the texts are for people."""

    key: str
    before: Value
    after: Value
    before_text: str
    after_text: str


class RevisionAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """A revision: who set it, when (position `position`), and what it changed."""

    revision: str
    created_time: str
    actor: str
    position: int
    changes: tuple[ChangeAnswer, ...]


class RevisionList(msgspec.Struct, frozen=True, rename="camel"):
    """Revisions, the newest first; `page_token` goes on with older ones."""

    revisions: tuple[RevisionAnswer, ...]
    page_token: str


def latest(view: View) -> Revision | None:
    """The revision in force; None where nothing was ever set."""
    return view.get(LATEST, LATEST_KEY)


def revision_of(view: View, revision: int) -> Revision | None:
    """That revision (0: the one in force); None where there is no such one."""
    return view.get(REVISIONS, revision_key(revision)) if revision else latest(view)


def revisions(view: View, *, size: int, token: str) -> RevisionList:
    """Revisions, the newest first."""
    page = view.scan(REVISIONS, descending=True, after=token, limit=page_size(size))
    return RevisionList(tuple(map(_revision, page.rows)), page.token)


def settings(values: dict[str, Value]) -> tuple[SettingAnswer, ...]:
    """Every setting that this release knows; those that `values` lacks have their default."""
    return tuple(_setting(key, values) for key in SETTINGS)


def unit_of(setting: Setting) -> str:
    """``ms`` for lengths of time, else nothing."""
    return "ms" if MS in setting.meaning else ""


def value_text(key: str, value: Any) -> str:
    """A value for people: ``30s``, ``true``, ``0.9``, an expression as it was written."""
    if isinstance(value, bool):
        return "true" if value else "false"
    setting = SETTINGS.get(key)
    if setting is not None and isinstance(value, int) and unit_of(setting):
        return format_duration(value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def change_text(change: Change) -> str:
    """A change for people: ``node.lostAfter 1m -> 30s``."""
    before = value_text(change.key, change.before)
    return f"{change.key} {before} -> {value_text(change.key, change.after)}"


def _setting(key: str, values: dict[str, Value]) -> SettingAnswer:
    setting = SETTINGS[key]
    value = values.get(key, setting.default)
    return SettingAnswer(
        key=key,
        value=value,
        text=value_text(key, value),
        default=setting.default,
        changed=value != DEFAULTS[key],
        unit=unit_of(setting),
        least=setting.least,
        most=setting.most,
        meaning=setting.meaning.replace(f" {MS}", ""),
    )


def _revision(row: Revision) -> RevisionAnswer:
    return RevisionAnswer(
        revision=str(row.revision),
        created_time=rfc3339(row.at),
        actor=row.actor,
        position=row.position,
        changes=tuple(
            ChangeAnswer(
                one.key,
                one.before,
                one.after,
                value_text(one.key, one.before),
                value_text(one.key, one.after),
            )
            for one in row.changes
        ),
    )
