"""Shapes that are kept otherwise than they are written: environments, mounts, file contents."""

from typing import Any

from yaml import Node
from yaml.nodes import MappingNode, ScalarNode, SequenceNode

from logyard_domain.definition import Mount, notation
from logyard_workflows_dsl.groups import Record
from logyard_workflows_dsl.nodes import is_null, kind_of
from logyard_workflows_dsl.problems import Segment, shown
from logyard_workflows_dsl.reading import Reading
from logyard_workflows_dsl.shapes import Refer, Schema, Shape, Text


class Content(Text):
    """The text of a file; nothing said is an empty file."""

    def blank(self) -> object:
        return ""


class Environment(Shape):
    """Variables as a list of `NAME=value`; becomes a dictionary."""

    def __init__(self, name: Text, secret: Text) -> None:
        self._entry = Text()
        self._name = name
        self._secret = secret

    def read(self, reading: Reading, node: Node) -> object:
        if not isinstance(node, SequenceNode):
            return reading.wrong(
                node,
                f"a list of NAME=value is wanted here, not {kind_of(node)}; "
                "write for instance `- DATA_FOLDER=/data`",
            )
        values: dict[str, str] = {}
        for index, item in enumerate(reading.items(node)):
            reading.path.append(index)
            text = self._entry.read(reading, item)
            if isinstance(text, str):
                name, equals, value = text.partition("=")
                if not equals:
                    reading.wrong(item, f"`{shown(text)}` has no `=`; write `{shown(name)}=value`")
                elif self._name.accepts(reading, item, name) and (
                    not value.startswith("secret://") or self._secret.accepts(reading, item, value)
                ):
                    if name in values:
                        reading.warn(item, f"{name} is set before; this value wins")
                    values[name] = value
            reading.path.pop()
        return values

    def write(self, value: Any) -> object:
        return [f"{name}={text}" for name, text in value.items()]

    def schema(self, refer: Refer) -> Schema:
        assert self._name.mark is not None
        return {
            "type": "array",
            "items": {"type": "string", "pattern": f"^{self._name.mark.pattern}="},
            "examples": [["DATA_FOLDER=/data"]],
        }


class Mounts(Shape):
    """Volumes by path, or, as in version v1, paths by volume; becomes mounts by clean path.

    The form is decided by the key: one that begins with `/` is a path.
    """

    def __init__(self, mount: Record, path: Text) -> None:
        self._mount = mount
        self._path = path
        self._volume = Text()

    def read(self, reading: Reading, node: Node) -> object:
        if not isinstance(node, MappingNode):
            return reading.wrong(
                node,
                f"a mapping of paths to volumes is wanted here, not {kind_of(node)}; "
                "write for instance `/data: {volume: data}`",
            )
        mounts: dict[str, Mount] = {}
        above = tuple(reading.path)
        for key, key_node, item in reading.entries(node):
            reading.path.append(key)
            read = self._by_path if key.startswith("/") else self._by_volume
            found = read(reading, key, key_node, item)
            if found is not None:
                path, mount, below, place = found
                if path in mounts:
                    reading.wrong(key_node, f"a volume is mounted at {path} already")
                else:
                    mounts[path] = mount
                    reading.moved[(*above, path)] = ((*reading.path, *below), place)
            reading.path.pop()
        return mounts

    def write(self, value: Any) -> object:
        return {path: self._mount.write(mount) for path, mount in value.items()}

    def schema(self, refer: Refer) -> Schema:
        short: Schema = {"type": "string", "description": "key of the volume"}
        by_volume: Schema = {
            "type": "object",
            "properties": {"location": self._path.schema(refer)},
            "required": ["location"],
            "additionalProperties": False,
            "deprecated": True,
        }
        return {
            "type": "object",
            "patternProperties": {
                "^/": {"anyOf": [refer(self._mount), short]},
                "^[^/]": by_volume,
            },
            "additionalProperties": False,
        }

    def _by_path(
        self, reading: Reading, key: str, key_node: Node, item: Node
    ) -> tuple[str, Mount, tuple[Segment, ...], Node] | None:
        path = self._clean(reading, key_node, key)
        if is_null(item):
            reading.wrong(key_node, "the volume is missing; write for instance `{volume: data}`")
            return None
        if isinstance(item, ScalarNode):
            name = self._volume.read(reading, item)
            if path is None or not isinstance(name, str):
                return None
            return path, Mount(volume=name), (), item
        mount = self._mount.read(reading, item)
        if path is None or not isinstance(mount, Mount):
            return None
        return path, mount, ("volume",), _under(item, "volume")

    def _by_volume(
        self, reading: Reading, key: str, key_node: Node, item: Node
    ) -> tuple[str, Mount, tuple[Segment, ...], Node] | None:
        keys: list[str] = []
        location: Node | None = None
        if isinstance(item, MappingNode):
            for name, name_node, below in reading.entries(item):
                keys.append(name)
                if name == "location":
                    location = below
                elif name != "volume":
                    reading.wrong(name_node, "unknown field; did you mean `location`?", name)
        if "volume" in keys or (isinstance(item, ScalarNode) and not is_null(item)):
            volume = item.value if isinstance(item, ScalarNode) else "..."
            is_path = volume.startswith("/")
            right = f"{volume}: {{volume: {key}}}" if is_path else f"/{key}: {{volume: {volume}}}"
            reading.wrong(key_node, f"`{shown(key)}` is no absolute path; write `{shown(right)}`")
            return None
        if location is None or is_null(location):
            reading.wrong(
                key_node,
                f"the path is missing; write for instance `/data: {{volume: {shown(key)}}}`",
            )
            return None
        reading.path.append("location")
        text = self._path.read(reading, location)
        path = self._clean(reading, location, text) if isinstance(text, str) else None
        reading.path.pop()
        if path is None:
            return None
        reading.change(f"now `{path}: {{volume: {key}}}`")
        return path, Mount(volume=key), (), key_node

    def _clean(self, reading: Reading, node: Node, path: str) -> str | None:
        """The path without doubled or closing slashes; None after noting what is wrong with it."""
        if not self._path.accepts(reading, node, path):
            return None
        parts = [part for part in path.split("/") if part not in {"", "."}]
        if not parts:
            reading.wrong(node, "a volume cannot be mounted over `/`; write a folder below it")
            return None
        return "/" + "/".join(parts)


def _under(node: Node, key: str) -> Node:
    """The value of `key` in a mapping that has it."""
    assert isinstance(node, MappingNode)
    return next((item for name, item in node.value if name.value == key), node)


def environment() -> Environment:
    """The one shape of environments."""
    return Environment(
        Text(notation.mark_of(notation.VariableName)),
        Text(notation.mark_of(notation.SecretReference)),
    )
