"""`logyard priority`: what an expression would do, before it does."""

from typing import Any

import click

from logyard_api.cli import output
from logyard_api.cli.session import Session, asks
from logyard_api.cli.units import count
from logyard_api.cli.verbatim import Verbatim


@click.group()
def priority() -> None:
    """Try priority expressions."""


@priority.command(cls=Verbatim)
@click.argument("expression", metavar="EXPR")
@click.option("--limit", type=click.IntRange(1, 1000), default=25, help="At most so many; 25.")
@asks
def test(session: Session, expression: str, limit: int) -> None:
    """Show how EXPR would order what waits now, beside the order in force. Changes nothing."""
    body = {"expression": expression, "limit": limit}
    told = session.client.post("/scheduler/priority:test", body)
    if session.json:
        output.answer_json(told)
        return
    output.answer(_headline(told))
    lines: list[dict[str, Any]] = told["lines"]
    if lines:
        output.answer()
        output.table(
            ("PLACE", "WAS", "PRIO", "WAS PRIO", "WORKFLOW", "STAGE", "GROUP", "USER", "RANKS"),
            [_row(one) for one in lines],
            right=("PLACE", "WAS", "PRIO", "WAS PRIO", "RANKS"),
        )
    more = told["evaluated"] - len(lines)
    if more > 0:
        output.answer(f"and {count(more)} more; --limit shows them")
    if not told["rising"]:
        output.say("by it a priority may fall while work waits: nothing ensures that it starts")
    output.say(f"set it with `logyard config set scheduler.priority {_quoted(expression)}`")


def _headline(told: dict[str, Any]) -> str:
    waiting, evaluated = told["waiting"], told["evaluated"]
    if not waiting:
        return f"nothing waits at position {count(told['position'])}; the expression is well"
    part = "" if evaluated == waiting else f" (of {count(waiting)}, the oldest of each kind)"
    text = f"{count(told['moved'])} of {count(evaluated)} stages that wait{part} would move"
    if told["notFinite"]:
        text += f"; {count(told['notFinite'])} would have no finite priority: it would be refused"
    return f"{text}, as of position {count(told['position'])}"


def _row(one: dict[str, Any]) -> tuple[str, ...]:
    workflow, _, stage = str(one["stageId"]).partition("/")
    moved = one["placeBefore"] != one["placeAfter"]
    return (
        str(one["placeAfter"]),
        str(one["placeBefore"]) if moved else "=",
        _value(one["priorityAfter"]),
        _value(one["priorityBefore"]),
        f"{workflow} {one['workflowName']}",
        stage,
        one["accountId"],
        one["userId"],
        count(one["ranks"]),
    )


def _value(priority: float | None) -> str:
    return "none" if priority is None else f"{priority:.2f}"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
