"""From the types of a definition to the shapes of the language: one table for each version."""

import functools
import types
import typing
from collections.abc import Callable, Iterable
from typing import Annotated, Any, Final, Literal, Union

import msgspec
from yaml import Node

from logyard_domain.definition import (
    Cpu,
    Dependency,
    Endpoint,
    Job,
    Mount,
    ScaleDown,
    Service,
    ServiceDefaults,
    ServicePort,
    Volume,
    Workflow,
    notation,
)
from logyard_workflows_dsl import forms, groups, shapes
from logyard_workflows_dsl.groups import Entry, Habits, Ignore, Written
from logyard_workflows_dsl.reading import Reading, Version
from logyard_workflows_dsl.shapes import Shape

_ALIASES: Final = {"by-core": "byCore", "decryptionSecret": "decryption-secret"}
"""Second spellings that the language has for a few keys, by the first."""

_LATER: Final = ("use", "size", "annotations")
"""Keys of a volume that version v1 does not have."""

_SERVICE_ONLY: Final = ("persist", "readiness-probe", "autoscaler", "dynamic-config")

_ALWAYS_WRITTEN: Final[dict[type, tuple[str, ...]]] = {
    Cpu: ("cores",),
    Dependency: ("status",),
    Endpoint: ("protocol", "type", "scope"),
    ServicePort: ("protocol",),
}
"""Fields that are printed even where they have our default, so that any reader agrees."""

_HINTS: Final[dict[type, dict[str, str]]] = {
    Workflow: {
        "priority": "a priority is given when the workflow is started, not in its file",
        "name": "a name is given when the workflow is started, not in its file",
    },
    Job: {
        **{
            key: f"only a service has `{key}`; move the job under `services`"
            for key in _SERVICE_ONLY
        },
        "timeout": "write `policy: {timeout: {execute: 2h}}`",
        "retry": "write `policy: {retry: {attempts: 2}}`",
        "retries": "write `policy: {retry: {attempts: 2}}`",
        "gpus": "write `resource: {devices: {nvidia.com/gpu: 1}}`",
    },
    Service: {"task-array": "only a job can be a task array"},
    ServiceDefaults: {"policy": "services have no policy; write it under `defaults.job`"},
    ScaleDown: {"services": "what shrinks is the service itself; leave it out"},
}


@functools.cache
def language(version: Version) -> groups.Record:
    """The shape of a whole file."""
    compiler = _Compiler(version)
    return compiler.record(Workflow)


class _Compiler:
    """Makes the shapes of one version, each type once."""

    def __init__(self, version: Version) -> None:
        self._version: Version = version
        self._records: dict[type, groups.Record] = {}

    def record(self, kind: type[msgspec.Struct]) -> groups.Record:
        if kind in self._records:
            return self._records[kind]
        record = self._records[kind] = groups.Record(kind)
        record.habits = Habits(_ignored(kind, self._version), dict(_HINTS.get(kind, {})))
        hints = typing.get_type_hints(kind, include_extras=True)
        for info in msgspec.structs.fields(kind):
            if kind is Volume and self._version == "v1" and info.encode_name in (*_LATER, "name"):
                continue
            self._add(record, info, hints[info.name])
        if kind is Volume and self._version == "v1":
            hint = "it belongs to version v4; write `version: v4`, or `workflow upgrade` the file"
            record.habits = record.habits._replace(hints=dict.fromkeys(_LATER, hint))
        return record

    def shape(self, hint: Any) -> Shape:
        """The shape of a type hint."""
        origin, arguments = typing.get_origin(hint), typing.get_args(hint)
        if origin is Annotated:
            return self._marked(arguments[0], arguments[1:])
        if origin in {Union, types.UnionType}:
            kinds = [one for one in arguments if one is not type(None)]
            if len(kinds) == 1:
                return self.shape(kinds[0])
            return groups.Either({one.__struct_config__.tag: self.record(one) for one in kinds})
        if origin is Literal:
            return shapes.Choice(arguments)
        if origin is tuple:
            return groups.Items(self.shape(arguments[0]))
        if origin is dict and arguments[1] is Mount:
            path = shapes.Text(notation.mark_of(notation.AbsolutePath))
            return forms.Mounts(self.record(Mount), path)
        if origin is dict:
            key = self.shape(arguments[0])
            assert isinstance(key, shapes.Text)
            return groups.Table(key, self.shape(arguments[1]))
        if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
            return self.record(hint)
        return _PLAIN[hint]()

    def _marked(self, kind: Any, marks: Iterable[object]) -> Shape:
        for mark in marks:
            make = _MARKED.get(mark.__class__)
            if make is not None:
                return make(mark)
        return self.shape(kind)

    def _add(self, record: groups.Record, info: msgspec.structs.FieldInfo, hint: Any) -> None:
        shape = self._version_choice() if info.encode_name == "version" else self.shape(hint)
        always = info.required or info.encode_name in _ALWAYS_WRITTEN.get(record.kind, ())
        newer = notation.Newer() in typing.get_args(hint)
        default = info.default_factory() if callable(info.default_factory) else info.default
        keys: tuple[str, ...] = tuple(info.encode_name.split("."))
        if isinstance(shape, groups.Either):
            names = ", ".join(shape.tags)
            for tag, below in shape.tags.items():
                record.entries[tag] = Entry(info.name, below)
            record.written.append(Written(info.name, (), shape, default, always))
            record.required.append((info.name, tuple(shape.tags), f"one of {names}"))
            return
        entry = Entry(info.name, shape, newer)
        if len(keys) == 2:
            nested = record.entries.setdefault(
                keys[0], Entry("", groups.Nested({}, Habits({}, {})))
            ).shape
            assert isinstance(nested, groups.Nested)
            nested.entries[keys[1]] = entry
        else:
            record.entries[keys[0]] = entry
            if keys[0] in _ALIASES:
                record.entries[_ALIASES[keys[0]]] = entry._replace(alias=True)
        record.written.append(Written(info.name, keys, shape, default, always))
        if info.required:
            advice = f"for instance `{keys[0]}: {shape.example}`" if shape.example else "it"
            record.required.append((info.name, keys, advice))

    def _version_choice(self) -> Shape:
        return shapes.Choice(("v4", "v1"))


_PLAIN: Final[dict[type, Callable[[], Shape]]] = {str: shapes.Text, bool: shapes.Flag}
_MARKED: Final[dict[type, Callable[[Any], Shape]]] = {
    notation.Text: shapes.Text,
    notation.Whole: shapes.Whole,
    notation.Real: shapes.Real,
    notation.Duration: shapes.Duration,
    notation.Size: lambda _: shapes.Size(),
    notation.Content: lambda _: forms.Content(),
    notation.Variables: lambda _: forms.environment(),
}


def _ignored(kind: type, version: Version) -> dict[str, Ignore]:
    if kind in {Job, Service}:
        policy: dict[str, Ignore] = {"policy": _ignore_policy} if kind is Service else {}
        return {"name": _ignore_name, **policy}
    if kind is Workflow:
        return {"completed": _ignore_completed}
    if kind is Volume and version == "v1":
        return {"name": _drop_name}
    return {}


def _ignore_name(reading: Reading, key_node: Node, item: Node) -> None:
    key = reading.path[-1] if reading.path else ""
    if item.value != key:
        reading.warn(key_node, f"ignored; its name is `{key}`, the key", "name")


def _ignore_policy(reading: Reading, key_node: Node, item: Node) -> None:
    reading.warn(
        key_node, "ignored; only jobs have a policy, a service has no time limit", "policy"
    )


def _ignore_completed(reading: Reading, key_node: Node, item: Node) -> None:
    reading.warn(key_node, "ignored; it is no field for people, leave it out", "completed")


def _drop_name(reading: Reading, key_node: Node, item: Node) -> None:
    reading.change("dropped; in v4 a name means a persistent volume of that name", "name")
