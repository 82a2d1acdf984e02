"""`logyard config`: what decisions are made by, changed with a revision for each change."""

from collections.abc import Mapping
from typing import Any

import click

from logyard_api.cli import output
from logyard_api.cli.outcomes import USAGE, Answered, Trouble
from logyard_api.cli.session import Session, asks
from logyard_api.cli.units import clock
from logyard_api.cli.verbatim import Verbatim

PATH = "/admin/centralconfig"


@click.group()
def config() -> None:
    """Show and change the configuration that decisions use, and tell its history."""


@config.command()
@click.argument("key", required=False)
@click.option("--revision", type=click.IntRange(min=1), help="As it was in this revision.")
@click.option("--changed", is_flag=True, help="Only what is not as by default.")
@asks
def show(session: Session, key: str | None, revision: int | None, changed: bool) -> None:
    """Show every setting, or the value of KEY."""
    told = session.client.get(PATH, {"revision": revision})
    settings: list[dict[str, Any]] = told["settings"]
    if key is not None:
        _show_one(session, settings, key)
        return
    if session.json:
        output.answer_json(told)
        return
    chosen = [one for one in settings if one["changed"] or not changed]
    if chosen:
        output.table(
            ("SETTING", "VALUE", "MEANING"),
            [(_marked(one), one["text"], one["meaning"]) for one in chosen],
        )
    output.answer(_since(told) + ("" if chosen else "; everything is as by default"))


def _show_one(session: Session, settings: list[dict[str, Any]], key: str) -> None:
    for one in settings:
        if one["key"] == key:
            if session.json:
                output.answer_json(one)
            else:
                output.answer(one["text"])
            return
    raise Trouble(f"{key}: no such setting; `logyard config show` lists them", USAGE)


def _marked(one: Mapping[str, Any]) -> str:
    return f"{one['key']} *" if one["changed"] else str(one["key"])


def _since(told: Mapping[str, Any]) -> str:
    if told["revision"] == "0":
        return "nothing was ever set"
    when = clock(told["createdTime"], "seconds")
    who = str(told["actor"]).removeprefix("user:")
    return f"revision r{told['revision']}, set by {who} at {when}; * is not the default"


@config.command("set", cls=Verbatim)
@click.argument("pairs", nargs=-1, required=True, metavar="KEY VALUE [KEY VALUE]...")
@asks
def set_(session: Session, pairs: tuple[str, ...]) -> None:
    """Set KEY to VALUE; several pairs are one revision.

    Lengths of time are written like 30s or 5m. All other settings stay as they are.
    """
    if len(pairs) % 2:
        raise Trouble(f"{pairs[-1]}: a value is missing; write KEY VALUE [KEY VALUE]...", USAGE)
    keys = pairs[::2]
    twice = next((key for key in keys if keys.count(key) > 1), None)
    if twice is not None:
        raise Trouble(f"{twice} is set twice; keep one", USAGE)
    _change(session, dict(zip(keys, pairs[1::2], strict=True)))


@config.command()
@click.argument("keys", nargs=-1, required=True, metavar="KEY...")
@asks
def unset(session: Session, keys: tuple[str, ...]) -> None:
    """Give each KEY its default again."""
    _change(session, dict.fromkeys(keys))


def _change(session: Session, values: Mapping[str, str | None]) -> None:
    try:
        told = session.client.patch(PATH, {"values": values})
    except Answered as refusal:
        revision = session.client.get(PATH)["revision"]
        raise Trouble(
            f"{refusal.message}\nunchanged: revision r{revision} stays in force"
        ) from None
    if session.json:
        output.answer_json(told)
        return
    if not told["changed"]:
        output.answer(f"nothing to change: revision r{told['revision']} stays in force")
        return
    found = session.client.get(PATH, {"revision": told["revision"], "after": told["position"]})
    texts = {one["key"]: one["text"] for one in found["settings"]}
    output.answer(f"revision r{told['revision']} is in force")
    width = max(map(len, values))
    for key in values:
        output.answer(f"  {key:<{width}}  {texts[key]}")


@config.command()
@click.option("--limit", type=click.IntRange(min=1), default=25, help="At most so many; 25.")
@asks
def history(session: Session, limit: int) -> None:
    """Tell who changed what, and when, the newest first."""
    found = session.client.pages(f"{PATH}/revisions", "revisions", {}, limit)
    if session.json:
        output.answer_json({"revisions": found})
        return
    if not found:
        output.say("nothing was ever set; everything is as by default")
        return
    rows: list[tuple[str, ...]] = []
    for one in found:
        head = (
            f"r{one['revision']}",
            clock(one["createdTime"], "seconds"),
            str(one["actor"]).removeprefix("user:"),
        )
        changes = [
            (change["key"], f"{change['beforeText']} -> {change['afterText']}")
            for change in one["changes"]
        ] or [("-", "as it was")]
        rows += [(*head, *changes[0]), *(("", "", "", *change) for change in changes[1:])]
    output.table(("REVISION", "SET AT", "BY", "SETTING", "CHANGE"), rows)
