"""How long a stage or transfer may run, and how often it is tried again."""

from typing import Annotated

from msgspec import field

from logyard_domain.definition import limits
from logyard_domain.definition.notation import Duration, Millis, Part, Real, Whole


class Retry(Part, frozen=True, kw_only=True):
    """Trying again after a failure, with growing pauses.

    attempts: tries after the first one; 2 means that it runs three times at most
    backoff_ms: pause before the first new try
    backoff_factor: how much longer each further pause is than the one before
    backoff_max_ms: the longest pause
    """

    attempts: Annotated[int, Whole(0, limits.RETRY_ATTEMPTS_MAX)]
    backoff_ms: Annotated[int, Duration(0)] = field(default=1_000, name="backoff")
    backoff_factor: Annotated[float, Real(1.0, limits.BACKOFF_FACTOR_MAX)] = 2.0
    backoff_max_ms: Annotated[int, Duration(0)] = field(default=300_000, name="backoff-max")

    def pause_ms(self, retry: int) -> int:
        """Milliseconds to wait before new try number `retry`, counted from 1."""
        exponent = min(max(retry, 1) - 1, limits.RETRY_ATTEMPTS_MAX)
        return int(min(self.backoff_ms * self.backoff_factor**exponent, self.backoff_max_ms))


class Policy(Part, frozen=True, kw_only=True):
    """Limits on one stage or one transfer.

    timeout_ms: the longest allowed run of one try; then it is stopped and has failed
    retry: how often it is tried again after a failure
    """

    timeout_ms: Millis | None = field(default=None, name="timeout.execute")
    retry: Retry | None = None
