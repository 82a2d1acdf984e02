"""The fourteen rules that every log keeps, in one sentence each."""

from typing import NamedTuple


class Rule(NamedTuple):
    """`id` is what reports and options call it."""

    id: str
    name: str
    statement: str


RULES = (
    Rule(
        "I1",
        "capacity",
        "no node ever holds more cores, memory or devices than it has, and what is held for a "
        "preemptor is given to nobody else",
    ),
    Rule(
        "I2",
        "eligibility",
        "a placement has exactly the chunks that were asked for, on nodes that are up and have "
        "every annotation, device, feature and storage of the request",
    ),
    Rule(
        "I3",
        "lifecycle",
        "everything goes its way from one state to the next, starts once, ends exactly once, and "
        "is stopped when its time limit and the grace are over",
    ),
    Rule(
        "I4",
        "prediction",
        "the first in line has a promise for the earliest instant at which it fits if what runs "
        "takes as long as it may, and nothing placed behind it makes that later",
    ),
    Rule(
        "I5",
        "improvement",
        "a promise moves to a later instant only when a cause lies between, and the log names it",
    ),
    Rule(
        "I6",
        "promise kept",
        "what has a promise starts by the promised instant, unless such a cause lies between",
    ),
    Rule(
        "I7",
        "work conservation",
        "after a tick nothing waits that could be placed without delaying a promise",
    ),
    Rule(
        "I8",
        "order among equals",
        "of equal requests the one that comes first in order starts first, unless its time limit "
        "is longer",
    ),
    Rule(
        "I9",
        "preemption",
        "an eviction keeps every rule: victim, run time, gap, permission, use of the nodes, limit; "
        "no victim is needless, and nobody evicts whom it made room for",
    ),
    Rule(
        "I10",
        "no starvation",
        "nothing is placed in order while something of higher priority waits for the same nodes",
    ),
    Rule(
        "I11",
        "accounting",
        "what is counted adds up: ranks of a stage, room of a node, times that attempts ran",
    ),
    Rule(
        "I12",
        "time",
        "positions have no gaps, instants never go back, terms and revisions count up, and each "
        "decision names what it was based on",
    ),
    Rule(
        "I13",
        "backfill",
        "what is backfilled has a time limit, and one of higher priority has a promise for the "
        "same nodes",
    ),
    Rule(
        "I14",
        "parked work",
        "what no node could hold even if it were empty is parked with the reason, has no promise, "
        "and blocks nobody",
    ),
)
RULE_IDS = tuple(rule.id for rule in RULES)
