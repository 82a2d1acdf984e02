"""By when what holds room has given it back: its start, its time limit and the grace of a kill."""

from logyard_engine.audit.work import Attempt

LATE_MS = 1_000


def due(attempt: Attempt, grace_ms: int) -> int:
    """By when it, and all that queues behind it, should have ended."""
    return expected(attempt, grace_ms, 0)


def expected(attempt: Attempt, grace_ms: int, now: int) -> int:
    """The same as it is expected at instant `now`.

    What is late is expected to be as late again: one second, two, four, and so on after it was due.
    """
    limit = attempt.stage.limit_ms + grace_ms
    if attempt.after:
        end = limit + max(expected(victim, grace_ms, now) for victim in attempt.after)
    else:
        end = limit + attempt.since
        if attempt.stopping:
            end = min(end, attempt.stopped_at + grace_ms)
    follower = attempt.follower
    while follower is not None:
        end += limit
        follower = follower.follower
    if end > now:
        return end
    late = LATE_MS
    while end + late <= now:
        late *= 2
    return end + late
