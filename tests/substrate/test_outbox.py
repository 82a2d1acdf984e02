"""News of work that took over room of other work comes in the order of the room."""

from itertools import pairwise
from random import Random

import pytest

from logyard_domain.commands import Ended, Report
from logyard_engine.substrate.outbox import Outbox


def told(outbox: Outbox) -> list[str]:
    """What the next report says, in the order in which the engine reads it; acknowledged."""
    report = outbox.take()
    if report is None:
        return []
    assert outbox.acknowledged(report)
    return read(report)


def read(report: Report) -> list[str]:
    return [f"-{one.allocation}" for one in report.ended] + [
        f"+{one.allocation}" for one in report.began
    ]


def test_a_start_waits_for_the_end_before_it() -> None:
    outbox = Outbox("n")
    outbox.behind("b", "a")
    outbox.began("a", 1)
    assert told(outbox) == ["+a"]
    outbox.began("b", 2)
    assert told(outbox) == []
    assert outbox
    outbox.ended(Ended("a", "finished", started_at=1))
    assert told(outbox) == ["-a", "+b"]
    assert not outbox


def test_who_never_began_is_told_at_once() -> None:
    outbox = Outbox("n")
    outbox.behind("b", "a")
    outbox.behind("c", "b")
    outbox.ended(Ended("b", "canceled"))
    assert told(outbox) == ["-b"]
    outbox.began("c", 3)
    assert told(outbox) == []
    outbox.ended(Ended("a", "finished", started_at=1))
    assert told(outbox) == ["-a", "+c"]


def test_nobody_waits_for_what_nobody_wants_to_hear_of() -> None:
    outbox = Outbox("n")
    outbox.behind("b", "a")
    outbox.ended(Ended("b", "finished", started_at=2))
    assert told(outbox) == []
    outbox.passed("a")
    assert told(outbox) == ["-b"]


@pytest.mark.parametrize("seed", range(200))
def test_a_line_is_told_in_order(seed: int) -> None:
    """Ends come when their output is carried, in any order; reports fail now and then."""
    dice = Random(seed)
    names = [f"w/{number}" for number in range(dice.randint(2, 8))]
    outbox = Outbox("n")
    for before, name in pairwise(names):
        outbox.behind(name, before)
    news = [("+", name) for name in names]
    for name in names:
        place = news.index(("+", name))
        news.insert(dice.randint(place + 1, len(news)), ("-", name))
    heard: list[str] = []
    for sign, name in news:
        if sign == "+":
            outbox.began(name, 1)
        else:
            outbox.ended(Ended(name, "finished", started_at=1))
        if dice.random() < 0.3 and (report := outbox.take()):
            if dice.random() < 0.3:
                outbox.failed(report)
            else:
                assert outbox.acknowledged(report)
                heard += read(report)
    while outbox:
        heard += told(outbox)
    ends = [one for one in heard if one.startswith("-")]
    assert ends == [f"-{name}" for name in names]
    for before, name in pairwise(names):
        if f"+{name}" in heard:
            assert heard.index(f"-{before}") < heard.index(f"+{name}")
