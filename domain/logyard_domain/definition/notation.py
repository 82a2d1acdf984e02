"""How values are written in a workflow file: marks on the types of a definition.

The marks are read by the workflow language (reading, printing, JSON Schema). They constrain what
people write, never what is read back from a log.
"""

from collections.abc import Iterable
from typing import Annotated, Final

import msgspec

from logyard_domain.definition import limits


class Part(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="kebab", gc=False):
    """A piece of a workflow definition: a value, named in the file by its kebab-case names.

    A dotted name (`timeout.execute`) is nested in the file.
    """


class Text(msgspec.Struct, frozen=True, gc=False):
    """Text that matches `pattern` as a whole; `says` completes the sentence "`x` is no ..."."""

    says: str
    example: str
    pattern: str = ""
    length_max: int = 0


class Whole(msgspec.Struct, frozen=True, gc=False):
    """A whole number from `least` to `most`."""

    least: int
    most: int


class Real(msgspec.Struct, frozen=True, gc=False):
    """A number from `least` to `most`, fractions allowed."""

    least: float
    most: float


class Size(msgspec.Struct, frozen=True, gc=False):
    """A number of bytes, written with units; greater than zero."""


class Duration(msgspec.Struct, frozen=True, gc=False):
    """Milliseconds, written as in Go; at least `least_ms`."""

    least_ms: int = 1


class Variables(msgspec.Struct, frozen=True, gc=False):
    """Variables by name, written as a list of `NAME=value`."""


class Content(msgspec.Struct, frozen=True, gc=False):
    """The text of a file; an entry that says nothing is an empty file."""


class Newer(msgspec.Struct, frozen=True, gc=False):
    """A field that is newer than version 4.1 of the language: read, kept, and warned about."""


_LABEL: Final = r"[a-z0-9]([a-z0-9-]*[a-z0-9])?"
_NO_PARENT: Final = r"(?!(.*/)?\.\.(/|$))"
_SCOPES: Final = "(user|group|account|organization|cluster)"

Label = Annotated[
    str,
    Text(
        "name of small letters, digits and `-`, starting and ending with a letter or digit, "
        f"at most {limits.NAME_LENGTH_MAX} characters",
        "render-tiles",
        _LABEL,
        limits.NAME_LENGTH_MAX,
    ),
]
VolumeKey = Annotated[
    str,
    Text(
        "volume key of letters, digits, `_`, `-` and `.`, starting with a letter or digit",
        "data_volume",
        r"[A-Za-z0-9][A-Za-z0-9_.-]*",
        limits.NAME_LENGTH_MAX,
    ),
]
FileKey = Annotated[
    str,
    Text(
        "name of a file, relative and without `..`",
        "settings.json",
        _NO_PARENT + r"[^/\x00-\x1f\x7f][^\x00-\x1f\x7f]*",
        255,
    ),
]
AnnotationKey = Annotated[
    str, Text("annotation key", "nvidia.com/gpu.model", r"[^\s\x00-\x1f\x7f]+", 253)
]
DeviceName = Annotated[
    str, Text("name of a device", "nvidia.com/gpu", r"[A-Za-z0-9][A-Za-z0-9_./-]*", 253)
]
VariableName = Annotated[
    str, Text("name of a variable", "DATA_FOLDER", r"[A-Za-z_][A-Za-z0-9_.-]*", 255)
]
Environment = Annotated[dict[str, str], Variables()]
FileText = Annotated[str, Content()]
AbsolutePath = Annotated[
    str,
    Text(
        "absolute path without `..`",
        "/data/results",
        _NO_PARENT + r"/[^\x00]*",
        limits.PATH_LENGTH_MAX,
    ),
]
UrlPath = Annotated[
    str, Text("path of a URL", "/health", r"/[^\s\x00-\x1f\x7f]*", limits.PATH_LENGTH_MAX)
]
Link = Annotated[
    str,
    Text(
        "URI",
        "docker://alpine:3.21",
        r"[A-Za-z][A-Za-z0-9+.-]*://[^\x00-\x20\x7f](.*[^\x00-\x20\x7f])?",
        limits.PATH_LENGTH_MAX,
    ),
]
SecretReference = Annotated[
    str,
    Text(
        "reference to a secret",
        "secret://user/MY_TOKEN",
        rf"secret://{_SCOPES}/[A-Za-z0-9_][A-Za-z0-9_.-]*",
        512,
    ),
]
VolumeReference = Annotated[
    str,
    Text(
        "volume reference",
        "volume://user/ephemeral or volume://group/persistent/data",
        r"volume://(user|group|account)/[A-Za-z0-9][A-Za-z0-9_.-]*(/[A-Za-z0-9][A-Za-z0-9_.-]*)?",
        512,
    ),
]
ResourceName = Annotated[str, Text("name", "scratch", r"[A-Za-z0-9][A-Za-z0-9_.-]*", 253)]
Line = Annotated[str, Text("text without NUL", "", r"[^\x00]+")]
"""Any text but none: empty text is refused."""

HeaderName = Annotated[
    str, Text("name of a header", "X-Token", r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", 255)
]

Bytes = Annotated[int, Size()]
Millis = Annotated[int, Duration()]
Port = Annotated[int, Whole(1, limits.PORT_MAX)]
Seconds = Annotated[int, Whole(1, limits.SECONDS_MAX)]
SecondsOrNone = Annotated[int, Whole(0, limits.SECONDS_MAX)]


def mark_of(kind: object) -> Text:
    """The mark on one of the texts above."""
    marks: Iterable[object] = getattr(kind, "__metadata__", ())
    return next(mark for mark in marks if isinstance(mark, Text))
