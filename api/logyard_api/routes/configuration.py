"""The configuration that decisions use: shown, changed as a whole or in parts, and its history."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from logyard_api.bodies import Answer, Body, Count, Reply
from logyard_api.decisions import PRIORITY, changed, flat, read_written, written
from logyard_api.errors import Failure, invalid
from logyard_api.folders import aside
from logyard_api.operations import Routes, ViewQuery
from logyard_api.ordering import Ordering, ordering, queue
from logyard_api.yard import Yard
from logyard_domain.commands import SetConfig
from logyard_domain.configuration import DEFAULTS, Value
from logyard_projections.answers.asking import PAGE_SIZE_MAX
from logyard_projections.answers.configuration import (
    RevisionList,
    SettingAnswer,
    revision_of,
    revisions,
    settings,
)
from logyard_projections.instants import rfc3339
from logyard_projections.view import View
from logyard_workflows_dsl.expressions import UnreadableExpression, parse, rendered

routes = Routes("configuration")
Limit = Annotated[int, Meta(ge=1, le=1000)]


class ConfigQuery(ViewQuery, frozen=True):
    """Which configuration.

    revision: of the configuration; 0 is the one in force
    """

    revision: Count = 0


class CentralConfig(Reply, frozen=True):
    """A revision of the configuration.

    config: the values as YAML, in base64
    revision: its number; 0 where nothing was ever set and all is as by default
    createdTime: when it was set
    actor: who set it
    position: of the log, at which it was set
    settings: each value with its default, bounds and meaning
    """

    config: bytes
    revision: str
    created_time: str | None
    actor: str
    position: int
    settings: tuple[SettingAnswer, ...]


class WholeBody(Body, frozen=True):
    """A whole configuration; what it leaves out has its default.

    config: YAML in base64, keys nested or dotted
    """

    config: bytes


class PartBody(Body, frozen=True):
    """Settings to change; all others stay.

    values: by key; null is the default; lengths of time in milliseconds, or as `30s`
    """

    values: dict[str, Any]


class Configured(Reply, frozen=True):
    """What is in force now.

    revision: its number
    position: of the log
    changed: false when everything was so already
    """

    revision: str
    position: int
    changed: bool


class RevisionsQuery(ViewQuery, frozen=True):
    """Which revisions.

    pageSize: at most so many; 1000 when absent
    pageToken: `pageToken` of the page before
    """

    page_size: Count = 0
    page_token: str = ""


class TestBody(Body, frozen=True):
    """An expression to try.

    expression: as `scheduler.priority` would have it
    limit: most lines to answer, up to 1000
    """

    expression: str
    limit: Limit = 100


@routes.add("GET", "/v4/admin/centralconfig")
async def get_config(yard: Yard, query: ConfigQuery) -> Answer[CentralConfig]:
    """The configuration in force, or an earlier revision."""

    def question(view: View) -> CentralConfig | None:
        row = revision_of(view, query.revision)
        if row is None and query.revision:
            return None
        values: dict[str, Value] = DEFAULTS | (row.values if row is not None else {})
        return CentralConfig(
            config=written(values),
            revision=str(row.revision if row is not None else 0),
            created_time=rfc3339(row.at) if row is not None else None,
            actor=row.actor if row is not None else "",
            position=row.position if row is not None else 0,
            settings=settings(values),
        )

    return await yard.find(
        question,
        f"there is no revision {query.revision} of the configuration; "
        "`logyard config history` lists those that there are",
    )


@routes.add("POST", "/v4/admin/centralconfig")
async def set_config(yard: Yard, body: WholeBody) -> Answer[Configured]:
    """Replace the whole configuration."""
    try:
        table = read_written(body.config)
    except ValueError as trouble:
        raise invalid(f"body: config: {trouble}") from trouble
    return await _set(yard, table, whole=True)


@routes.add("PATCH", "/v4/admin/centralconfig")
async def change_config(yard: Yard, body: PartBody) -> Answer[Configured]:
    """Change some settings."""
    return await _set(yard, body.values, whole=False)


@routes.add("GET", "/v4/admin/centralconfig/revisions")
async def list_config_revisions(yard: Yard, query: RevisionsQuery) -> Answer[RevisionList]:
    """List revisions, the newest first: who set them, when, and what they changed."""
    size = query.page_size or PAGE_SIZE_MAX
    return await yard.look(lambda view: revisions(view, size=size, token=query.page_token))


@routes.add("POST", "/v4/scheduler/priority:test")
async def check_priority(yard: Yard, body: TestBody) -> Answer[Ordering]:
    """How an expression would order what waits now, beside the order in force. Changes nothing."""
    try:
        formula = parse(body.expression, name=PRIORITY)
    except UnreadableExpression as trouble:
        raise unreadable(trouble, body.expression) from trouble
    now = yard.now()
    found = await yard.peek(lambda world: queue(world, now))
    answer = await aside(lambda: ordering(found, formula, body.limit))
    return Answer(answer, found.position)


async def _set(yard: Yard, table: dict[str, Any], whole: bool) -> Answer[Configured]:
    # One at a time: each says what shall be in force as a whole.
    async with yard.configuring:
        in_force = await yard.peek(
            lambda world: ({**world.config}, {**world.formulas}, world.revision)
        )
        kept, formulas, before = in_force
        command = _command(DEFAULTS if whole else kept, {} if whole else formulas, table)
        receipt = await yard.ask(command, "config.set")
        after = await yard.peek(lambda world: world.revision)
    await yard.seen(receipt.position)
    configured = Configured(revision=str(after), position=receipt.position, changed=after != before)
    return Answer(configured, receipt.position)


def _command(kept: dict[str, Value], formulas: dict[str, Any], table: dict[str, Any]) -> SetConfig:
    values: dict[str, Any] = {}
    try:
        values = flat(table)
        return changed(kept, formulas, values)
    except UnreadableExpression as trouble:
        raise unreadable(trouble, str(values.get(PRIORITY))) from trouble
    except ValueError as trouble:
        raise invalid(str(trouble)) from trouble


def unreadable(trouble: UnreadableExpression, text: str) -> Failure:
    """The answer to an expression that cannot be used: a caret under each place, and details."""
    return invalid(
        rendered(trouble.faults, text), [msgspec.to_builtins(fault) for fault in trouble.faults]
    )
