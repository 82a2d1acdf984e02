"""What every verb that asks a server has: `--server`, `--json`, and a client made on first use."""

import contextlib
import functools
from collections.abc import Callable, Mapping
from typing import Any, Concatenate, ParamSpec, TypeVar

import click

from logyard_api.cli import output, places
from logyard_api.cli.client import Client
from logyard_api.cli.outcomes import Answered

P = ParamSpec("P")
F = TypeVar("F", bound=Callable[..., Any])
AT = f"{__name__}.at"


class Session:
    """One run of a verb. `json` tells that the answer is for a program; `at` the earlier moment
    that views are asked about.
    """

    def __init__(self, server: str | None, as_json: bool, at: str = "") -> None:
        self.json = as_json
        self._at = at
        self._server = server
        self._client: Client | None = None

    @property
    def client(self) -> Client:
        """The client of the server that this run asks. Raises NoServer when none is known."""
        if self._client is None:
            self._client = Client(places.find(self._server), self._at)
        return self._client

    def another(self) -> Client:
        """A second connection to the same server, for a stream beside questions."""
        return Client(self.client.place)

    def settle(self, path: str, told: Mapping[str, Any]) -> None:
        """Wait until the view at `path` has seen what was just done, so that the next command does.

        What the view then says of it, and whether it comes in time, does not matter here.
        """
        if told.get("position"):
            with contextlib.suppress(Answered):
                self.client.get(path, {"after": int(told["position"])})

    def done(self, value: Any, sentence: str) -> None:
        """Answer a request that changed something."""
        if self.json:
            output.answer_json(value)
        else:
            output.answer(sentence)

    def close(self) -> None:
        """End the connection, if there is one."""
        if self._client is not None:
            self._client.close()


def as_of(function: F) -> F:
    """Give a verb that asks views the option --at. Goes right above `asks`."""
    return click.option(
        "--at",
        metavar="MOMENT",
        help="As it was then: a position of the log, a time, or how long ago (15m).",
        expose_value=False,
        callback=_moment,
    )(function)


def _moment(ctx: click.Context, _: click.Parameter, value: str | None) -> None:
    ctx.meta[AT] = value


def asks(function: Callable[Concatenate[Session, P], None]) -> Callable[..., None]:
    """Give a verb the options of a session, and the session as its first argument."""

    @click.option("--json", "as_json", is_flag=True, help="The whole answer as JSON.")
    @click.option("--server", metavar="URL", help="Server to ask (also LOGYARD_SERVER).")
    @click.pass_context
    @functools.wraps(function)
    def verb(ctx: click.Context, /, *args: Any, **kwargs: Any) -> None:
        session = Session(
            kwargs.pop("server") or ctx.find_root().obj,
            kwargs.pop("as_json"),
            ctx.meta.get(AT) or "",
        )
        try:
            function(session, *args, **kwargs)
        finally:
            session.close()

    return verb
