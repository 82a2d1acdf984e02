"""Bytes to values and back: the one place where requests are read and answers written."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Annotated, Any, Generic, TypeVar, cast, get_args

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from logyard_api.errors import Code, Failure, invalid

BODY_BYTES_MAX = 16 * 1024 * 1024
"""Largest JSON body that is read."""

Count = Annotated[int, msgspec.Meta(ge=0)]
"""A whole number that is not negative."""

POSITION_HEADER = "Logyard-Position"

T = TypeVar("T")


class Body(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Base of everything that a request carries, in its body or its query. Null means absent."""


class Reply(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Base of everything that is answered."""


class Answer(msgspec.Struct, Generic[T], frozen=True):
    """A value to be sent as JSON, and the log position that it is true at."""

    value: T
    position: int


async def read(request: Request, most: int = BODY_BYTES_MAX) -> bytes:
    """The whole body, refused as soon as it is seen to be longer than `most` bytes."""
    announced = request.headers.get("content-length", "")
    if announced.isdigit() and int(announced) > most:
        raise _too_large(most)
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > most:
            raise _too_large(most)
        parts.append(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _too_large(most: int) -> Failure:
    return Failure(Code.INVALID, f"the body is larger than {most} bytes", http=413)


class Reader(Generic[T]):
    """Turns the bytes of a body into one type."""

    def __init__(self, kind: type[T]) -> None:
        self._decoder = msgspec.json.Decoder(kind)

    def read(self, data: bytes) -> T:
        """The value in `data`. Raises Failure, naming the path and what is wrong there."""
        try:
            return self._decoder.decode(data or b"{}")
        except msgspec.ValidationError as trouble:
            raise invalid(f"body: {sentence(trouble)}") from trouble
        except msgspec.DecodeError as trouble:
            raise invalid(f"the body is no JSON: {trouble}") from trouble
        except UnicodeDecodeError as trouble:
            raise invalid("the body is no UTF-8 text") from trouble
        except RecursionError as trouble:
            raise invalid("the body is nested too deeply") from trouble


def without_nulls(value: Any) -> Any:
    """The JSON value with every member dropped that is null."""
    if isinstance(value, dict):
        members = cast(dict[str, Any], value)
        return {key: without_nulls(part) for key, part in members.items() if part is not None}
    if isinstance(value, list):
        items: list[Any] = [*value]
        return [without_nulls(part) for part in items]
    return value


def sentence(trouble: msgspec.ValidationError) -> str:
    """What msgspec found, with the path first: ``jobs.a: Expected `int`, got `str```."""
    text = str(trouble)
    what, at, path = text.rpartition(" - at `$")
    return f"{path.rstrip('`').lstrip('.')}: {what}" if at else text


class Query(Generic[T]):
    """Reads the query of a request into one struct; `name=a&name=b` fills a list."""

    def __init__(self, kind: type[T]) -> None:
        self._kind = kind
        fields = msgspec.structs.fields(cast(type[msgspec.Struct], kind))
        self._lists = {field.encode_name: _is_list(field.type) for field in fields}
        self._absent = {field.encode_name for field in fields if _may_be_absent(field.type)}

    def read(self, request: Request) -> T:
        """The query as a value. Raises Failure for a name that the operation does not know."""
        found: dict[str, Any] = {}
        text = request.scope["query_string"]
        for name, value in request.query_params.multi_items() if text else ():
            many = self._lists.get(name)
            if many is None:
                raise invalid(self._unknown(name))
            if value.lower() == "null" and name in self._absent:
                # Read as it is, it would say that nothing was given.
                raise invalid(f"query: {name}: a query cannot say null; leave it out")
            if many:
                found.setdefault(name, []).append(value)
            else:
                found[name] = value
        try:
            return msgspec.convert(found, self._kind, strict=False)
        except msgspec.ValidationError as trouble:
            raise invalid(f"query: {sentence(trouble)}") from trouble

    def _unknown(self, name: str) -> str:
        near = get_close_matches(name, self._lists, n=1)
        known = ", ".join(sorted(self._lists)) or "none"
        hint = f"did you mean `{near[0]}`?" if near else f"there are: {known}"
        return f"query: `{name}` is no parameter of this operation; {hint}"


def _is_list(kind: Any) -> bool:
    return getattr(kind, "__origin__", kind) in (list, tuple)


def _may_be_absent(kind: Any) -> bool:
    """Whether None is one of its values, and no text is."""
    parts = get_args(kind)
    return type(None) in parts and str not in parts


_encoder = msgspec.json.Encoder()


def encode(value: Any) -> bytes:
    """The value as JSON."""
    return _encoder.encode(value)


def respond(value: Any, position: int | None = None, headers: Mapping[str, str] = {}) -> Response:
    """The value as a JSON answer; `position` goes into its header."""
    response = Response(_encoder.encode(value), media_type="application/json")
    if position is not None:
        response.headers[POSITION_HEADER] = str(position)
    for name, text in headers.items():
        response.headers[name] = text
    return response
