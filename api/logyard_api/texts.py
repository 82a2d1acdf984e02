"""Workflow files as they come in: long ones read beside the event loop, problems as answers."""

import asyncio
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar, cast

import msgspec
import yaml

from logyard_api.bodies import encode, without_nulls
from logyard_api.errors import Failure, invalid
from logyard_domain.definition import Workflow
from logyard_workflows_dsl import Loaded, Problem, Unreadable, Upgraded, dump
from logyard_workflows_dsl import load as load_text
from logyard_workflows_dsl import upgrade as upgrade_text

SHORT_CHARS = 32_768
"""Texts up to this length are read at once; longer ones in a thread: nobody waits for them."""

LOADED_KEPT = 32
"""Short texts whose workflows are kept: many workflows are started from one file."""

T = TypeVar("T")


class Text(msgspec.Struct, frozen=True):
    """The text of a workflow, and whether it came as the object `definition`."""

    source: str
    is_object: bool


def text_of(definition: dict[str, Any] | None, raw: str | None) -> Text:
    """The text that a request brings. Raises Failure when it brings none.

    Where both are given the text counts: a person wrote it, and the object was made from it.
    """
    if raw:
        return Text(raw, False)
    if not definition:
        raise invalid(
            "body: give the workflow as `definition` (object) or `rawSpecification` (text)"
        )
    return Text(encode(without_nulls(definition)).decode(), True)


async def load(text: Text) -> Loaded:
    """The workflow. Raises Failure with one detail for each problem."""
    try:
        if len(text.source) <= SHORT_CHARS:
            return _load_short(text.source)
        return await _read(load_text, text.source)
    except Unreadable as trouble:
        raise unreadable(trouble) from trouble


@lru_cache(LOADED_KEPT)
def _load_short(source: str) -> Loaded:
    return load_text(source)


async def upgrade(text: Text) -> Upgraded:
    """The text in version v4. Raises Unreadable."""
    return await _read(upgrade_text, text.source)


async def _read(read: Callable[[str], T], source: str) -> T:
    if len(source) <= SHORT_CHARS:
        return read(source)
    return await asyncio.get_running_loop().run_in_executor(None, read, source)


def unreadable(trouble: Unreadable) -> Failure:
    """The answer to a workflow file that cannot be used."""
    count = len(trouble.problems)
    head = "1 problem" if count == 1 else f"{count} problems"
    return invalid(
        f"{head} in the workflow; the first: {trouble.problems[0]}",
        [problem_of(problem) for problem in trouble.problems],
    )


def problem_of(problem: Problem) -> dict[str, Any]:
    """The problem as a JSON object."""
    return cast(dict[str, Any], msgspec.to_builtins(problem))


def plain(workflow: Workflow) -> dict[str, Any]:
    """The workflow as an object, as its file in version v4 would say it."""
    return parsed(dump(workflow))


def parsed(source: str) -> dict[str, Any]:
    """The object that a workflow's text holds, as it was written."""
    if source.startswith("{"):
        try:
            return msgspec.json.decode(source, type=dict[str, Any])
        except msgspec.DecodeError:
            pass
    return cast(dict[str, Any], yaml.load(source, Loader=_Loader))


_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
