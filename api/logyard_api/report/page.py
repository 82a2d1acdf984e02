"""The page: everything that it needs is in it."""

from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files

import msgspec

from logyard_api.release import VERSION
from logyard_api.report.columns import columns_of
from logyard_projections.answers.words import listed, number_of
from logyard_projections.instants import lasting, rfc3339
from logyard_projections.picture.picture import Picture, Revision

REASONS = {
    "dependency": "what it depends on",
    "data": "its data, when nothing else was missing",
    "back-off": "the pause before it is tried again",
    "limit": "its own limit of ranks at once",
    "capacity": "capacity: nodes that could hold it were full",
    "turn": "its turn: it would have delayed what was first in line",
    "not-evaluated": "being looked at",
    "closed-nodes": "nodes that are cordoned, draining or lost",
    "no-nodes": "any node that is up",
    "never": "nodes that there are not: none could ever hold it",
    "behind": "the one before it, whose room it gets",
    "eviction": "its victims to leave",
}
REVISIONS_SHOWN = 4
GROUPS_SHOWN = 40
HOUR_MS = 3_600_000


def page_of(picture: Picture) -> str:
    """The picture as HTML."""
    data = msgspec.json.encode(columns_of(picture)).decode()
    span = f"{_at(picture.since)} to {_at(picture.until)}"
    plain = f"{rfc3339(picture.since)} to {rfc3339(picture.until)}"
    parts = {
        "title": escape(f"Cluster {picture.cluster}, {plain}: Logyard report"),
        "heading": f"Cluster {escape(picture.cluster)}, {span}",
        "facts": _facts(picture),
        "tables": _groups(picture) + _waits(picture) + _loads(picture),
        "footer": _footer(picture),
        "style": _sheet(".css"),
        "script": _sheet(".js"),
        # In a script element only `<` could end it or start a comment.
        "data": data.replace("<", "\\u003c"),
    }
    page = _sheet(".html")
    # One pass from the front: what is put in is never looked at again.
    found: list[str] = []
    for piece in page.split("{{"):
        name, close, rest = piece.partition("}}")
        found.append(parts[name] + rest if close else piece)
    return "".join(found)


def _sheet(suffix: str) -> str:
    folder = files("logyard_api.report") / "sheet"
    found = sorted((one for one in folder.iterdir() if one.name.endswith(suffix)), key=str)
    return "\n".join(one.read_text(encoding="utf-8") for one in found)


def _facts(picture: Picture) -> str:
    sums = list(picture.groups.values())
    number = sum(one.allocations for one in sums)
    facts = [
        f"{lasting(picture.until - picture.since)}",
        f"positions <b>{picture.first:,}</b> to <b>{picture.position:,}</b>",
        _policies(picture.revisions),
        f"<b>{number_of(number, 'allocation')}</b> on "
        f"<b>{number_of(len(picture.nodes), 'node')}</b>",
    ]
    for name, count in (
        ("backfilled", sum(one.backfilled for one in sums)),
        ("preempting", sum(one.preempting for one in sums)),
        ("preempted", sum(one.preempted for one in sums)),
        ("ended badly (failed, lost or timed out)", sum(one.bad for one in sums)),
    ):
        if count:
            facts.append(f"{count:,} {name}")
    if picture.waiting:
        facts.append(f"{picture.waiting:,} waiting still at the end")
    text = " \u00b7 ".join(facts)
    if picture.shaded:
        text += (
            f"<br>The {number_of(len(picture.bars), 'allocation')} that ran longest are drawn one "
            f"by one, the {picture.shaded:,} others as grey shade by how much of a node they used."
        )
    if picture.unknown:
        text += (
            f"<br>{number_of(picture.unknown, 'record')} of a newer release could not be read: "
            "what they say is not in this picture."
        )
    return text


def _policies(revisions: Sequence[Revision]) -> str:
    if not revisions:
        return "policy r0 (as built in)"
    if len(revisions) == 1:
        return f"policy <b>r{revisions[0].revision}</b> [{revisions[0].position:,}]"
    names = [f"r{one.revision} [{one.position:,}]" for one in revisions]
    return f"policies <b>{escape(listed(names, REVISIONS_SHOWN))}</b>"


def _groups(picture: Picture) -> str:
    ranked = sorted(picture.groups.items(), key=lambda one: (-one[1].core_ms, one[0]))
    several = len({organization for organization, _ in picture.groups}) > 1
    rows = [
        (
            "/".join(key) if several else key[1] or "none",
            f"{one.allocations:,}",
            f"{one.core_ms / HOUR_MS:,.1f}",
            lasting(round(one.waited_ms / max(one.allocations, 1))),
            f"{one.backfilled:,}",
            f"{one.preempting:,}",
            f"{one.preempted:,}",
            f"{one.bad:,}",
        )
        for key, one in ranked[:GROUPS_SHOWN]
    ]
    head = (
        "group", "allocations", "core-hours", "mean wait", "backfilled", "preempting",
        "preempted", "ended badly",
    )  # fmt: skip
    caption = "Groups"
    if len(ranked) > GROUPS_SHOWN:
        caption = f"Groups: the {GROUPS_SHOWN} that used most of {len(ranked):,}"
    return _table(caption, head, rows)


def _waits(picture: Picture) -> str:
    total = sum(one.total_ms for one in picture.waits)
    rows = [
        (
            REASONS.get(one.reason, one.reason),
            lasting(one.total_ms),
            f"{one.total_ms / total:.1%}",
            f"{one.peak:,}",
        )
        for one in sorted(picture.waits, key=lambda one: -one.total_ms)
    ]
    return _table("Waiting for", ("reason", "sum of waits", "share", "most at once"), rows)


def _loads(picture: Picture) -> str:
    rows: list[tuple[str, str]] = []
    for load in picture.loads:
        offered = sum(load.offered)
        rows.append((load.name, f"{sum(load.used) / offered:.1%}" if offered else "none offered"))
    return _table("Utilisation", ("resource", "mean"), rows)


def _table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    body = "".join(f"<tr>{_cells(row)}</tr>" for row in rows)
    if not body:
        return ""
    top = "".join(
        f'<th scope="col"{_number(index)}>{escape(name)}</th>' for index, name in enumerate(head)
    )
    return (
        f"<table><caption>{escape(caption)}</caption><thead><tr>{top}</tr></thead>"
        f"<tbody>{body}</tbody></table>\n"
    )


def _cells(row: Sequence[str]) -> str:
    return "".join(f"<td{_number(index)}>{escape(cell)}</td>" for index, cell in enumerate(row))


def _number(index: int) -> str:
    return ' class="n"' if index else ""


def _at(at: int) -> str:
    told = rfc3339(at)
    return f'<time datetime="{told}">{told}</time>'


def _footer(picture: Picture) -> str:
    return (
        f"Logyard {escape(VERSION)}; a fold of the log of cluster {escape(picture.cluster)} up to "
        f"position {picture.position:,}. Numbers in [brackets] are positions of events. Times are "
        'in <span class="zone">UTC</span>.'
    )
