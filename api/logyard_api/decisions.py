"""Decisions as people give them: nested or dotted keys, durations as `30s`, expressions as text."""

from collections.abc import Mapping
from typing import Any, cast

import yaml

from logyard_domain.commands import SetConfig
from logyard_domain.configuration import DEFAULTS, SETTINGS, Value, checked
from logyard_domain.expressions import Expression
from logyard_domain.quantities import parse_duration
from logyard_projections.answers.configuration import unit_of
from logyard_workflows_dsl.expressions import parse

PRIORITY = "scheduler.priority"
KEYS_MAX = 1_000
DEPTH_MAX = 10


def flat(table: Mapping[str, Any]) -> dict[str, Any]:
    """The settings in nested tables by dotted keys. Raises ValueError for too many or too deep."""
    found: dict[str, Any] = {}
    tables: list[tuple[str, Mapping[str, Any]]] = [("", table)]
    while tables:
        prefix, inner = tables.pop()
        for key, part in inner.items():
            name = f"{prefix}{key}"
            if isinstance(part, Mapping):
                tables.append((f"{name}.", cast("Mapping[str, Any]", part)))
            else:
                found[name] = part
            if len(found) + len(tables) > KEYS_MAX or name.count(".") > DEPTH_MAX:
                raise ValueError(f"{name[:80]}: so many keys, or levels of them, no setting has")
    return found


def nested(values: Mapping[str, Value]) -> dict[str, Any]:
    """The same the other way round."""
    table: dict[str, Any] = {}
    for key, value in values.items():
        *folders, name = key.split(".")
        place = table
        for folder in folders:
            place = place.setdefault(folder, {})
        place[name] = value
    return table


def written(values: Mapping[str, Value]) -> bytes:
    """The values as YAML, nested."""
    return yaml.safe_dump(nested(values), sort_keys=False, allow_unicode=True).encode()  # pyright: ignore[reportUnknownMemberType]


def read_written(data: bytes) -> dict[str, Any]:
    """The table in YAML. Raises ValueError."""
    try:
        table: Any = yaml.safe_load(data.decode())
    except (UnicodeDecodeError, yaml.YAMLError, RecursionError) as trouble:
        raise ValueError(f"this is no YAML: {trouble}") from trouble
    if table is None:
        return {}
    if not isinstance(table, dict):
        raise ValueError("a configuration is a table of keys and values")
    return cast(dict[str, Any], table)


def as_value(key: str, given: Any, bare: bool = False) -> Value:
    """The value that was given, in the type of its setting; a text where that is another is read.

    `bare` takes a text of digits for milliseconds where a length of time is wanted. Raises
    ValueError naming the key and what would be right. Keys that are not known are left to
    `configuration.checked`.
    """
    setting = SETTINGS.get(key)
    if not isinstance(given, (bool, int, float, str)):
        raise ValueError(f"{key}: {given!r} is no value; write a number, true, false or a text")
    if setting is None or not isinstance(given, str) or isinstance(setting.default, str):
        return given
    text = given.strip()
    if isinstance(setting.default, bool):
        return text == "true" if text in ("true", "false") else given
    if unit_of(setting) and not (bare and text.isdigit()):
        try:
            return parse_duration(text)
        except ValueError as trouble:
            raise ValueError(f"{key}: {trouble}") from None
    try:
        return type(setting.default)(text)
    except ValueError:
        return given


def settled(values: Mapping[str, Any], bare: bool = False) -> dict[str, Value]:
    """The given values, read (see `as_value`) and checked; others are not added.

    Raises ValueError.
    """
    found = {key: as_value(key, value, bare) for key, value in values.items()}
    whole = checked(found)
    return {key: whole[key] for key in found}


def meanings(values: Mapping[str, Value]) -> dict[str, Expression]:
    """The trees of those values that are expressions. Raises UnreadableExpression."""
    text = values.get(PRIORITY)
    return {} if text is None else {PRIORITY: parse(str(text), name=PRIORITY)}


def changed(
    values: Mapping[str, Value],
    formulas: Mapping[str, Expression],
    changes: Mapping[str, Any],
) -> SetConfig:
    """The command that changes some settings of the configuration `values`, whose expressions mean
    `formulas`. None stands for the default.

    Raises ValueError, or UnreadableExpression for an expression that cannot be used.
    """
    unset = [key for key, value in changes.items() if value is None]
    checked({key: DEFAULTS.get(key, 0) for key in unset})
    new = settled({key: value for key, value in changes.items() if value is not None})
    meant = {key: tree for key, tree in formulas.items() if key not in changes} | meanings(new)
    return SetConfig(
        values={**values, **new, **{key: DEFAULTS[key] for key in unset}}, formulas=meant
    )
