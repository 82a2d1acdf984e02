"""Advice and proofs as lines below an explanation."""

from collections.abc import Iterator, Mapping
from typing import Any

from logyard_api.cli.sentences import local
from logyard_api.cli.units import clock, count, many

Told = Mapping[str, Any]


def advice_lines(told: Told | None) -> Iterator[str]:
    """What would help; nothing where it was not asked."""
    if told is None:
        return
    yield ""
    yield local(told["summary"])
    changes = told["changes"]
    if changes:
        yield ""
    texts = [local(one["text"]) for one in changes]
    edge = max(map(len, texts), default=0)
    for text, one in zip(texts, changes, strict=True):
        step = "" if one["least"] else "; less may do"
        yield f"  {text:<{edge}}  {one['where']}{step}"
    if told["tries"]:
        yield (
            f"each alone, in place of what waits; the tick was run {many(told['tries'], 'time')}"
            f" in the world as of position {count(told['position'])}"
        )


def proof_lines(told: Told | None) -> Iterator[str]:
    """What was made once more; nothing where it was not asked."""
    if told is None:
        return
    for decision in told["decisions"]:
        yield ""
        yield local(decision["text"])
        yield from _read(decision["read"])
        for one in decision["differences"]:
            yield f"  differs   event {one['number']}: recorded {_event(one.get('recorded'))}"
            yield f"            found {_event(one.get('found'))}"
        others = decision["runnersUp"]
        if decision["fitted"]:
            chosen = decision["chosen"]
            how = f"; after {chosen} came" if others else f": {chosen}"
            if not decision["first"]:
                how = f"; {chosen} is not the first of them by the rules"
            yield f"  fitted    {many(decision['fitted'], 'node')}{how}"
            for one in others:
                yield f"            {one['text']}"
    if told.get("waits"):
        yield ""
        yield local(told["waits"]["text"])
        yield from _read(told["waits"]["read"])
    if told["cited"]:
        yield ""
        yield "rests on"
        for one in told["cited"]:
            at = clock(one["at"], "seconds")
            yield f"  {count(one['position']):>8}  {one['chain']}  {at}  {local(one['text'])}"
    yield ""
    yield (
        "`logyard replay` makes every decision of a log once more, `logyard audit` holds them to"
        " their rules by other code, `logyard log verify` recomputes the hashes"
    )


def _read(read: Told) -> Iterator[str]:
    yield (
        f"  read      {many(read['nodes'], 'node')} ({count(read['nodesUp'])} up),"
        f" {count(read['running'])} running, {many(read['waiting'], 'rank')} waiting in"
        f" {many(read['shapes'], 'shape')}, {many(read['promises'], 'promise')}"
    )
    yield f"  as of     {count(read['position'])} ({read['chain']}), {clock(read['now'])}"
    yield f"  policy    {read['formula']}  (revision {read['revision']})"


def _event(event: Told | None) -> str:
    if event is None:
        return "nothing"
    facts = ", ".join(f"{key} {value}" for key, value in event.items() if key != "type")
    return f"{event['type']}: {facts}"
