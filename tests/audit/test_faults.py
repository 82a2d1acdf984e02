"""Each fault that is planted into a clean log is found, and by the rule that it breaks."""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import islice

import pytest

from logyard_domain.records import Record
from logyard_engine.audit.auditor import audit
from tests.audit import bad_evictions, faults
from tests.audit.planting import relinked
from tests.audit.yards import contended, play

TRIES = 20
LOGS = 8
EVICTING = 4
STEPS = 60

Fault = Callable[[Sequence[Record]], Iterator[list[Record]]]


@lru_cache
def log(seed: int) -> tuple[Record, ...]:
    """A clean one."""
    return tuple(play(50 + seed, steps=STEPS, staging=seed % 2 == 0).records)


@lru_cache
def contended_log(seed: int) -> tuple[Record, ...]:
    """A clean one with evictions."""
    return tuple(contended(seed).records)


def tries(fault: Fault, logs: Sequence[Sequence[Record]]) -> list[list[Record]]:
    """Logs with the fault, spread over all the places where it can be."""
    found = [edited for log in logs for edited in islice(fault(log), 200)]
    assert len(found) >= TRIES
    return [found[len(found) * number // TRIES] for number in range(TRIES)]


def is_caught(edited: Sequence[Record], rule: str, words: str = "") -> None:
    """The audit says that the rule is broken, in words that match."""
    report = audit(relinked(edited))
    told = [one.what for one in report.verdict(rule).violations]
    assert any(re.search(words, what) for what in told), [
        (v.rule, v.violations[:3]) for v in report.verdicts if v.found
    ]


@pytest.mark.parametrize(
    ("fault", "rule"),
    [
        (faults.oversubscribed, "I1"),
        (faults.unfit, "I2"),
        (faults.lost, "I3"),
        (faults.doubled, "I3"),
        (faults.started_again, "I3"),
        (faults.overlong, "I3"),
        (faults.unpromised, "I4"),
        (faults.mispromised, "I4"),
        (faults.taken, "I4"),
        (faults.slipped, "I5"),
        (faults.misnamed, "I5"),
        (faults.unkept, "I6"),
        (faults.held_back, "I7"),
        (faults.out_of_turn, "I10"),
        (faults.miscounted, "I11"),
        (faults.set_back, "I12"),
        (faults.not_behind, "I13"),
        (faults.misparked, "I14"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_a_fault_is_found(fault: Fault, rule: str) -> None:
    for edited in tries(fault, [log(seed) for seed in range(LOGS)]):
        is_caught(edited, rule)


def test_a_gap_in_the_positions_is_found() -> None:
    whole = relinked(log(0))
    for index in range(1, len(whole), len(whole) // TRIES):
        report = audit([*whole[:index], *whole[index + 1 :][:20]])
        assert report.verdict("I12").violations[0].position == index + 2


def test_equal_requests_that_changed_places_are_found() -> None:
    for edited in tries(faults.swapped, [contended_log(seed) for seed in range(EVICTING)]):
        is_caught(edited, "I8")


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (bad_evictions.too_soon, "the least is"),
        (bad_evictions.too_close, "evicted for a priority higher by"),
        (bad_evictions.too_idle, "of the nodes were used"),
        (bad_evictions.too_many, "evictions in one tick"),
        (bad_evictions.switched_off, "while preemption is off"),
        (bad_evictions.forbidden, "may not preempt group"),
        (bad_evictions.protected, "is not preemptible"),
        (bad_evictions.needless, "fits without that"),
        (bad_evictions.wrong, "comes first|less priority|does not fit"),
        (bad_evictions.for_nobody, "which was not placed"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_an_eviction_against_the_rules_is_found(fault: Fault, words: str) -> None:
    for edited in tries(fault, [contended_log(seed) for seed in range(EVICTING)]):
        is_caught(edited, "I9", words)
