"""Lists, tables and records of the language."""

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec
from yaml import Node
from yaml.nodes import MappingNode, ScalarNode, SequenceNode

from logyard_workflows_dsl.nodes import is_null, kind_of
from logyard_workflows_dsl.problems import shown
from logyard_workflows_dsl.reading import FAILED, Reading
from logyard_workflows_dsl.shapes import Refer, Scalar, Schema, Shape, Text
from logyard_workflows_dsl.suggestions import suggestion

Ignore = Callable[[Reading, Node, Node], None]


class Items(Shape):
    """A list of values of one shape; becomes a tuple."""

    def __init__(self, of: Shape) -> None:
        self.of = of
        self.example = f"[{of.example}]" if of.example else ""

    def read(self, reading: Reading, node: Node) -> object:
        if not isinstance(node, SequenceNode):
            return reading.wrong(
                node, f"a list is wanted here, not {kind_of(node)}{self._hint(node)}"
            )
        values: list[object] = []
        path, read = reading.path, self.of.read
        for index, item in enumerate(reading.items(node)):
            path.append(index)
            values.append(read(reading, item))
            path.pop()
        if FAILED in values:
            kept = [index for index, value in enumerate(values) if value is not FAILED]
            reading.kept[tuple(path)] = kept
            values = [values[index] for index in kept]
        return tuple(values)

    def _hint(self, node: Node) -> str:
        if isinstance(node, ScalarNode) and isinstance(self.of, Scalar) and node.value.strip():
            return f"; write `[{shown(', '.join(node.value.split()))}]`"
        return f"; write for instance `{self.example}`" if self.example else ""

    def write(self, value: Any) -> object:
        return [self.of.write(item) for item in value]

    def schema(self, refer: Refer) -> Schema:
        return {"type": "array", "items": refer(self.of)}


class Table(Shape):
    """Values of one shape under keys that people choose; becomes a dictionary."""

    def __init__(self, key: Text, of: Shape) -> None:
        self.key = key
        self.of = of

    def read(self, reading: Reading, node: Node) -> object:
        if not isinstance(node, MappingNode):
            return reading.wrong(
                node,
                f"a mapping of names is wanted here, not {kind_of(node)}; "
                f"write for instance `{self.key.example}:` under it",
            )
        values: dict[str, object] = {}
        path, of = reading.path, self.of
        for key, key_node, item in reading.entries(node):
            path.append(key)
            self.key.accepts(reading, key_node, key)
            value = of.blank() if is_null(item) else of.read(reading, item)
            path.pop()
            if value is not FAILED:
                values[key] = value
        return values

    def write(self, value: Any) -> object:
        return {key: self.of.write(item) for key, item in value.items()}

    def schema(self, refer: Refer) -> Schema:
        return {
            "type": "object",
            "propertyNames": self.key.schema(refer),
            "additionalProperties": optional(refer(self.of)),
        }


class Entry(NamedTuple):
    """What a key of a record stands for: an attribute of its type."""

    attribute: str
    shape: Shape
    newer: bool = False
    alias: bool = False


class Habits(NamedTuple):
    """How a record treats keys that are not its own."""

    ignored: Mapping[str, Ignore]
    hints: Mapping[str, str]


class Written(NamedTuple):
    """How an attribute is printed: under which keys, and when it is left out."""

    attribute: str
    keys: tuple[str, ...]
    shape: Shape
    default: object
    always: bool


class Nested(Shape):
    """A mapping whose entries are attributes of the record around it."""

    def __init__(self, entries: dict[str, Entry], habits: Habits) -> None:
        self.entries = entries
        self.habits = habits

    def read(self, reading: Reading, node: Node) -> object:
        values: dict[str, object] = {}
        self.collect(reading, node, values, set())
        return values

    def collect(
        self, reading: Reading, node: Node, values: dict[str, object], seen: set[str]
    ) -> None:
        """Reads the entries into `values` by attribute; `seen` gets all that were there."""
        if not isinstance(node, MappingNode):
            reading.wrong(node, f"a mapping is wanted here, not {kind_of(node)}{self._hint(node)}")
            return
        path, known = reading.path, self.entries
        for key, key_node, item in reading.entries(node):
            entry = known.get(key)
            if entry is None:
                self._unknown(reading, key, key_node, item)
                continue
            if is_null(item):
                continue
            attribute, shape = entry.attribute, entry.shape
            path.append(key)
            if attribute in seen:
                reading.wrong(key_node, f"exactly one of {self._rivals(attribute)} is right")
            elif isinstance(shape, Nested) and not attribute:
                shape.collect(reading, item, values, seen)
            else:
                seen.add(attribute)
                if entry.newer:
                    reading.warn(key_node, "newer than version 4.1 of the language; it is kept")
                value = shape.read(reading, item)
                if value is not FAILED:
                    values[attribute] = value
            path.pop()

    def schema(self, refer: Refer) -> Schema:
        properties: dict[str, Schema] = {}
        for key, entry in self.entries.items():
            properties[key] = optional(refer(entry.shape))
            if entry.alias:
                properties[key] = {**properties[key], "deprecated": True}
        for key in self.habits.ignored:
            properties[key] = {"deprecated": True, "description": "Ignored."}
        return {"type": "object", "properties": properties, "additionalProperties": False}

    def _unknown(self, reading: Reading, key: str, key_node: Node, item: Node) -> None:
        if key in self.habits.ignored:
            self.habits.ignored[key](reading, key_node, item)
        elif key in self.habits.hints:
            reading.wrong(key_node, f"unknown field; {self.habits.hints[key]}", key)
        else:
            known = [name for name, entry in self.entries.items() if not entry.alias]
            reading.wrong(key_node, f"unknown field; {suggestion(key, known)}", key)

    def _rivals(self, attribute: str) -> str:
        keys = [key for key, entry in self.entries.items() if entry.attribute == attribute]
        return ", ".join(f"`{key}`" for key in keys)

    def _hint(self, node: Node) -> str:
        key, entry = next(iter(self.entries.items()))
        if isinstance(node, ScalarNode) and isinstance(entry.shape, Scalar) and not is_null(node):
            return f"; write `{key}: {shown(node.value)}` under it"
        return f"; write `{key}:` and so on under it"


class Record(Nested):
    """A mapping with fixed keys; becomes a struct."""

    def __init__(self, kind: type[msgspec.Struct]) -> None:
        super().__init__({}, Habits({}, {}))
        self.kind = kind
        self.written: list[Written] = []
        self.required: list[tuple[str, tuple[str, ...], str]] = []
        """Attribute, the keys of which one must be there, what to write."""

    def read(self, reading: Reading, node: Node) -> object:
        values: dict[str, object] = {}
        seen: set[str] = set()
        if not isinstance(node, MappingNode):
            self.collect(reading, node, values, seen)
            return self.blank()
        self.collect(reading, node, values, seen)
        complete = True
        for attribute, keys, advice in self.required:
            if attribute not in seen:
                reading.wrong(node, f"missing; write {advice}", *(keys if len(keys) == 1 else ()))
            complete = complete and attribute in values
        return self.kind(**values) if complete else FAILED

    def write(self, value: Any) -> object:
        plain: dict[str, Any] = {}
        for attribute, keys, shape, default, always in self.written:
            item: object = getattr(value, attribute)
            if not always and item == default:
                continue
            written: Any = shape.write(item)
            target = plain
            for key in keys[:-1]:
                target = target.setdefault(key, {})
            if keys:
                target[keys[-1]] = written
            else:
                target.update(written)
        return plain

    def schema(self, refer: Refer) -> Schema:
        schema = super().schema(refer)
        what, fields = documented(self.kind)
        described = {
            written.keys[0]: fields.get(written.attribute, "")
            for written in self.written
            if written.keys
        }
        properties = schema["properties"]
        assert isinstance(properties, dict)
        for key, text in described.items():
            if text and "description" not in properties[key]:
                properties[key] = {**properties[key], "description": text}
        schema = {"title": self.kind.__name__, "description": what, **schema}
        schema["required"] = [keys[0] for _, keys, _ in self.required if len(keys) == 1]
        for _, keys, _ in self.required:
            if len(keys) > 1:
                schema["oneOf"] = [{"required": [key]} for key in keys]
        return schema

    def blank(self) -> object:
        return FAILED if self.required else self.kind()


class Either(Shape):
    """One of several records, each under a key of its own in the record around it."""

    def __init__(self, tags: dict[str, Record]) -> None:
        self.tags = tags

    def read(self, reading: Reading, node: Node) -> object:
        raise AssertionError("its records are read by the record around it")

    def write(self, value: Any) -> object:
        return next(
            {tag: record.write(value)}
            for tag, record in self.tags.items()
            if isinstance(value, record.kind)
        )

    def schema(self, refer: Refer) -> Schema:
        return {"oneOf": [refer(record) for record in self.tags.values()]}


def optional(schema: Schema) -> Schema:
    """The schema, or null, which stands for an absent entry."""
    kind, words = schema.get("type"), schema.get("enum")
    if isinstance(words, list):
        return {**schema, "enum": [*words, None]}
    if isinstance(kind, str) and len(schema) > 0:
        return {**schema, "type": [kind, "null"]}
    if isinstance(kind, list):
        return {**schema, "type": [*kind, "null"]}
    return {"anyOf": [schema, {"type": "null"}]}


_FIELD = re.compile(r"^(\w+): (.+)$", re.MULTILINE)


def documented(kind: type[msgspec.Struct]) -> tuple[str, dict[str, str]]:
    """What a struct is, and what each of its fields means, from its docstring."""
    texts = [
        "\n".join(line.strip() for line in (one.__dict__.get("__doc__") or "").splitlines())
        for one in kind.__mro__
    ]
    fields = {name: what for text in reversed(texts) for name, what in _FIELD.findall(text)}
    return texts[0].partition("\n\n")[0].replace("\n", " "), fields
