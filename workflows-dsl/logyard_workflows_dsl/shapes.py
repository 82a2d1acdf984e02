"""Scalars of the language: how each kind is read, printed and described."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

from yaml import Node
from yaml.nodes import ScalarNode

from logyard_domain.definition import notation
from logyard_domain.quantities import format_duration, format_size, parse_duration, parse_size
from logyard_workflows_dsl.nodes import is_null, is_text, kind_of
from logyard_workflows_dsl.problems import shown
from logyard_workflows_dsl.reading import FAILED, Reading
from logyard_workflows_dsl.suggestions import suggestion

Schema = dict[str, object]
Refer = Callable[["Shape"], Schema]


class Shape(ABC):
    """One kind of value: from a node to a value, from a value to plain data, and as JSON Schema."""

    example: str = ""

    @abstractmethod
    def read(self, reading: Reading, node: Node) -> object:
        """The value of `node`, or FAILED after noting why."""

    def write(self, value: Any) -> object:
        """The value as dictionaries, lists and scalars of YAML."""
        return value

    @abstractmethod
    def schema(self, refer: Refer) -> Schema:
        """JSON Schema of what can be written; `refer` gives the schema of another shape."""

    def blank(self) -> object:
        """The value of an entry that says nothing, or FAILED where there is no such value."""
        return FAILED


class Scalar(Shape):
    """A shape that is written as one scalar; `noun` names it in messages."""

    noun: ClassVar[str] = "text"

    def read(self, reading: Reading, node: Node) -> object:
        if not isinstance(node, ScalarNode):
            return reading.wrong(node, f"{self.noun} is wanted here, not {kind_of(node)}")
        if is_null(node):
            return reading.wrong(
                node, f"{self.noun} is wanted here, not nothing; for the word, put it in quotes"
            )
        if not reading.known_tag(node):
            return FAILED
        return self.parse(reading, node, node.value)

    @abstractmethod
    def parse(self, reading: Reading, node: ScalarNode, text: str) -> object:
        """The value of the text of `node`, or FAILED after noting why."""


class Text(Scalar):
    """Text; numbers and truth values stand for their own writing."""

    def __init__(self, mark: notation.Text | None = None) -> None:
        self.mark = mark
        self.example = mark.example if mark else ""
        self._matches = re.compile(mark.pattern, re.DOTALL).fullmatch if mark else None

    def parse(self, reading: Reading, node: ScalarNode, text: str) -> object:
        return text if self.accepts(reading, node, text) else FAILED

    def accepts(self, reading: Reading, node: Node, text: str) -> bool:
        """Whether `text` is what the mark asks for; notes a problem at `node` otherwise."""
        mark = self.mark
        if mark is None:
            if "\0" not in text and (text.isascii() or _encodable(text)):
                return True
            reading.wrong(
                node, "it has a character that no program can be given, NUL or half a pair"
            )
        elif not (text.isascii() or _encodable(text)):
            reading.wrong(node, "it has half of a surrogate pair, which is no character")
        elif mark.length_max and len(text) > mark.length_max:
            reading.wrong(node, f"it has {len(text)} characters; the most is {mark.length_max}")
        elif self._matches and self._matches(text):
            return True
        elif not text:
            example = f"write for instance {mark.example}" if mark.example else "leave it out"
            reading.wrong(node, f"it is empty; {example}")
        else:
            reading.wrong(
                node, f"`{shown(text)}` is no {mark.says}; write for instance {mark.example}"
            )
        return False

    def schema(self, refer: Refer) -> Schema:
        if self.mark is None:
            return {"type": ["string", "number", "boolean"]}
        schema: Schema = {"type": "string", "pattern": f"^({self.mark.pattern})$"}
        if self.mark.length_max:
            schema["maxLength"] = self.mark.length_max
        return schema


class Choice(Scalar):
    """One word of a few, in any letter case."""

    def __init__(self, words: tuple[str, ...]) -> None:
        self.words = words
        self.example = words[0]
        self._by_lower = {word.lower(): word for word in words}

    def parse(self, reading: Reading, node: ScalarNode, text: str) -> object:
        word = self._by_lower.get(text.lower())
        if word is not None:
            return word
        hint = suggestion(text, self.words) if text else f"write one of {', '.join(self.words)}"
        return reading.wrong(node, f"`{shown(text)}` is not known here; {hint}")

    def schema(self, refer: Refer) -> Schema:
        forms = (
            form
            for word in self.words
            for form in (word, word.lower(), word.upper(), word.capitalize())
        )
        return {"enum": list(dict.fromkeys(forms))}


class Flag(Scalar):
    """`true` or `false`."""

    noun = "true or false"
    example = "true"
    _words: ClassVar = {
        "true": True,
        "True": True,
        "TRUE": True,
        "false": False,
        "False": False,
        "FALSE": False,
    }

    def parse(self, reading: Reading, node: ScalarNode, text: str) -> object:
        value = self._words.get(text)
        if value is not None and not is_text(node):
            return value
        hint = " without quotes" if value is not None else ""
        return reading.wrong(node, f"`{shown(text)}` is text; write true or false{hint}")

    def schema(self, refer: Refer) -> Schema:
        return {"type": "boolean"}


class Whole(Scalar):
    """A whole number within bounds."""

    noun = "a whole number"
    _matches = re.compile(r"[-+]?[0-9]{1,30}|0o[0-7]{1,30}|0x[0-9a-fA-F]{1,30}").fullmatch

    def __init__(self, mark: notation.Whole) -> None:
        self.mark = mark
        self.example = str(max(mark.least, 1))

    def parse(self, reading: Reading, node: ScalarNode, text: str) -> object:
        if not self._matches(text):
            return reading.wrong(
                node, f"`{shown(text)}` is no whole number; write for instance {self.example}"
            )
        value = int(text, {"0o": 8, "0x": 16}.get(text[:2], 10))
        if value < self.mark.least:
            return reading.wrong(node, f"{value} is too small; the least is {self.mark.least}")
        if value > self.mark.most:
            return reading.wrong(node, f"{value} is too large; the most is {self.mark.most}")
        return value

    def schema(self, refer: Refer) -> Schema:
        return {"type": "integer", "minimum": self.mark.least, "maximum": self.mark.most}


class Real(Scalar):
    """A number within bounds."""

    noun = "a number"
    _matches = re.compile(
        r"[-+]?([0-9]{1,30}(\.[0-9]{0,30})?|\.[0-9]{1,30})([eE][-+]?[0-9]{1,3})?"
    ).fullmatch

    def __init__(self, mark: notation.Real) -> None:
        self.mark = mark
        self.example = f"{mark.least + 0.5:g}"

    def parse(self, reading: Reading, node: ScalarNode, text: str) -> object:
        if not self._matches(text):
            return reading.wrong(
                node, f"`{shown(text)}` is no number; write for instance {self.example}"
            )
        value = float(text)
        if not self.mark.least <= value <= self.mark.most:
            return reading.wrong(
                node,
                f"{shown(text)} is out of range, {self.mark.least:g} to {self.mark.most:g}",
            )
        return value

    def schema(self, refer: Refer) -> Schema:
        return {"type": "number", "minimum": self.mark.least, "maximum": self.mark.most}


class Size(Scalar):
    """A number of bytes, with or without a unit."""

    noun = "a size"
    example = "1GiB"

    def parse(self, reading: Reading, node: ScalarNode, text: str) -> object:
        try:
            size_bytes = parse_size(text)
        except ValueError as error:
            return reading.wrong(node, str(error))
        return size_bytes or reading.wrong(
            node, "a size is greater than 0; write for instance 1GiB"
        )

    def write(self, value: Any) -> object:
        return format_size(value)

    def schema(self, refer: Refer) -> Schema:
        units = "[bB]|[kKmMgGtTpPeE]([iI]?[bB]?)"
        return {
            "type": ["string", "integer"],
            "pattern": rf"^\s*[0-9]+(\.[0-9]+)?\s*({units})?\s*$",
            "minimum": 1,
            "examples": ["512MiB", "6GB"],
        }


class Duration(Scalar):
    """A length of time, with units."""

    noun = "a duration"
    example = "1h30m"

    def __init__(self, mark: notation.Duration) -> None:
        self.mark = mark

    def parse(self, reading: Reading, node: ScalarNode, text: str) -> object:
        try:
            duration_ms = parse_duration(text)
        except ValueError as error:
            return reading.wrong(node, str(error))
        if duration_ms < self.mark.least_ms:
            return reading.wrong(
                node, "a duration is greater than 0; write for instance 2h or 1h30m"
            )
        return duration_ms

    def write(self, value: Any) -> object:
        return format_duration(value)

    def schema(self, refer: Refer) -> Schema:
        part = r"([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|\u00b5s|\u03bcs|ms|s|m|h|d)"
        zero: Schema = {} if self.mark.least_ms else {"const": 0}
        text: Schema = {
            "type": "string",
            "pattern": f"^(({part})+|0)$",
            "examples": ["2h", "1h30m"],
        }
        return {"anyOf": [text, zero]} if zero else text


def _encodable(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)
