"""What an audit found: how often each rule applied, and where it was broken."""

from collections.abc import Collection

import msgspec

from logyard_engine.audit.rules import RULE_IDS, RULES

LISTED_MAX = 100
"""Violations of one rule that are listed; more are only counted."""


class Violation(msgspec.Struct, frozen=True):
    """One rule broken at `position`, at instant `at` (ms). `subject` is the allocation, workflow,
    stage or node that it is about; `what` is a sentence with the numbers.
    """

    position: int
    at: int
    subject: str
    what: str


class Verdict(msgspec.Struct, frozen=True):
    """One rule over a whole log: it applied `checked` times, and was broken `found` times.

    `violations` are the first of those.
    """

    rule: str
    name: str
    statement: str
    checked: int
    found: int
    violations: tuple[Violation, ...]


class Report(msgspec.Struct, frozen=True):
    """The whole audit of `records` records. `alive` workflows had not ended at the log's end."""

    cluster: str
    records: int
    alive: int
    verdicts: tuple[Verdict, ...]

    @property
    def clean(self) -> bool:
        """Whether no rule was broken."""
        return not any(verdict.found for verdict in self.verdicts)

    def verdict(self, rule: str) -> Verdict:
        """What was found about one rule."""
        return next(verdict for verdict in self.verdicts if verdict.rule == rule)


class Ledger:
    """Counts and findings while an audit goes on. `wanted` are the rules that are reported."""

    def __init__(self, wanted: Collection[str] = RULE_IDS) -> None:
        unknown = [rule for rule in wanted if rule not in RULE_IDS]
        if unknown:
            raise ValueError(f"{unknown[0]!r} is no rule; there are {', '.join(RULE_IDS)}")
        self._wanted = frozenset(wanted)
        self.position = 0
        self.at = 0
        self.checked = dict.fromkeys(RULE_IDS, 0)
        self._found = dict.fromkeys(RULE_IDS, 0)
        self._listed: dict[str, list[Violation]] = {rule: [] for rule in RULE_IDS}

    def breach(self, rule: str, subject: str, what: str) -> None:
        """The rule is broken at the present record."""
        self._found[rule] += 1
        listed = self._listed[rule]
        if len(listed) < LISTED_MAX:
            listed.append(Violation(self.position, self.at, subject, what))

    def verdicts(self) -> tuple[Verdict, ...]:
        """Of each rule that is wanted."""
        return tuple(
            Verdict(
                rule.id,
                rule.name,
                rule.statement,
                self.checked[rule.id],
                self._found[rule.id],
                tuple(self._listed[rule.id]),
            )
            for rule in RULES
            if rule.id in self._wanted
        )
