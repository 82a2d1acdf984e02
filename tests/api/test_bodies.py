"""Bodies and queries: what is read, and what is said of the rest."""

from typing import Any

import pytest
from starlette.requests import Request

from logyard_api.bodies import Body, Query, Reader, without_nulls
from logyard_api.errors import Failure
from logyard_api.operations import ViewQuery, described


class Inner(Body, frozen=True):
    """Inside."""

    core_count: int = 0


class Outer(Body, frozen=True):
    """A body.

    name: what it is called
    inner: what is in it,
        in two lines
    """

    name: str | None = None
    inner: Inner | None = None


class Asked(ViewQuery, frozen=True):
    """A query.

    page-size: how many
    """

    page_size: int = 25
    kinds: tuple[str, ...] = ()
    deep: bool = False


def request(query: str) -> Request:
    scope: dict[str, Any] = {"type": "http", "query_string": query.encode(), "headers": []}
    return Request(scope)


def test_null_is_absent() -> None:
    assert Reader(Outer).read(b'{"name":null,"inner":{"coreCount":2}}') == Outer(
        inner=Inner(core_count=2)
    )
    assert Reader(Outer).read(b"") == Outer()
    assert without_nulls({"a": None, "b": [{"c": None}, 1]}) == {"b": [{}, 1]}


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"nmae":"x"}', "unknown field `nmae`"),
        (b'{"inner":{"coreCount":"x"}}', "body: inner.coreCount: Expected `int`, got `str`"),
        (b'{"inner":{"corse":1}}', "body: inner: Object contains unknown field `corse`"),
        (b"{", "the body is no JSON"),
        (b"[1]", "Expected `object`, got `array`"),
        (b'{"name":"\xff"}', "the body is no"),
    ],
)
def test_what_is_wrong_is_named_with_its_path(body: bytes, said: str) -> None:
    with pytest.raises(Failure) as caught:
        Reader(Outer).read(body)
    assert caught.value.http == 400 and caught.value.code == 3
    assert said in caught.value.message


def test_deep_nesting_is_refused() -> None:
    with pytest.raises(Failure, match="nested too deeply"):
        Reader(dict[str, Any]).read(b'{"a":' * 100_000)


def test_a_query_is_read_into_its_types() -> None:
    found = Query(Asked).read(request("pageSize=7&kinds=a&kinds=b&deep=true&after=12"))
    assert found == Asked(page_size=7, kinds=("a", "b"), deep=True, after=12)
    assert Query(Asked).read(request("")) == Asked()


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("pagesize=1", "`pagesize` is no parameter of this operation; did you mean `pageSize`?"),
        ("pageSize=many", "query: pageSize: Expected `int`"),
        ("deep=perhaps", "query: deep"),
        ("after=null", "query: after: a query cannot say null; leave it out"),
    ],
)
def test_a_wrong_query_is_refused(query: str, said: str) -> None:
    with pytest.raises(Failure) as caught:
        Query(Asked).read(request(query))
    assert said in caught.value.message


def test_docstrings_describe_fields() -> None:
    assert described(Outer) == {"name": "what it is called", "inner": "what is in it, in two lines"}
    assert described(Asked)["after"].startswith("wait until the view")
