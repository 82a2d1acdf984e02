"""What the writer, the log and the views tell the metrics."""

from collections.abc import Iterator, Sequence
from time import perf_counter

from logyard_api.metrics import Metrics, Reading
from logyard_api.views import Views
from logyard_domain.records import Entry, Record
from logyard_engine.log.log import Log
from logyard_engine.loop import Loop
from logyard_engine.turn import Turned
from logyard_projections.answers.stats import stats
from logyard_projections.view import View

PARKED = "never_fits"


class MeasuredLog:
    """A log whose appends are counted and timed."""

    def __init__(self, log: Log, metrics: Metrics) -> None:
        self._log = log
        self._appends = metrics.counter("log_appends", "Appends to the log, one for each turn.")
        self._records = metrics.counter("log_records", "Records that were appended.")
        self._seconds = metrics.histogram(
            "log_append_seconds", "Time of an append, with its fsync."
        )
        self.take = log.take
        self.read = log.read
        self.close = log.close

    @property
    def cluster(self) -> str:
        return self._log.cluster

    @property
    def position(self) -> int:
        return self._log.position

    @property
    def chain(self) -> str:
        return self._log.chain

    def append(self, entries: Sequence[Entry]) -> list[Record]:
        """See `Log.append`."""
        began = perf_counter()
        records = self._log.append(entries)
        self._seconds.observe(perf_counter() - began)
        self._appends.inc()
        self._records.inc(len(records))
        return records

    def read_states(self, after: int = 0, upto: int | None = None) -> Iterator[tuple[int, bytes]]:
        """See `LogReader.read_states`."""
        return self._log.read_states(after, upto)


def measure(metrics: Metrics, loop: Loop, views: Views) -> None:
    """Watch the writer and the views from now on."""
    ticks = metrics.counter("scheduler_ticks", "Turns of the engine.", ("trigger", "outcome"))
    duration = metrics.histogram(
        "scheduler_tick_duration_seconds", "Time of a turn, append and all."
    )
    interval = metrics.histogram("scheduler_tick_interval_seconds", "Time between two turns.")
    bound = {
        (asked, wrote): ticks.labels(
            "command" if asked else "time", "events" if wrote else "nothing"
        )
        for asked in (True, False)
        for wrote in (True, False)
    }
    last = perf_counter()

    def turned(turn: Turned, seconds: float) -> None:
        nonlocal last
        now = perf_counter()
        interval.observe(now - last)
        last = now
        duration.observe(seconds)
        bound[bool(turn.answers), bool(turn.records)].inc()

    loop.observe(turned)
    metrics.gauge("log_position", "Last position of the log.", (), lambda: [({}, loop.position)])
    metrics.gauge(
        "projection_lag_positions",
        "Positions that the views have not seen yet.",
        ("projection",),
        lambda: [({"projection": "views"}, max(0, loop.position - views.position))],
    )
    metrics.gauge(
        "scheduler_pending",
        "Ranks that wait to be placed, by why.",
        ("queue", "reason"),
        lambda: views.look(_pending),
    )


def _pending(view: View) -> list[Reading]:
    found = stats(view, 0)
    waiting = [
        ({"queue": "parked" if reason == PARKED else "ready", "reason": reason}, float(count))
        for reason, count in found.waiting_by_reason.items()
    ]
    return [
        *waiting,
        ({"queue": "pending", "reason": "dependency"}, float(found.totals.pending)),
        ({"queue": "ready", "reason": "back_off"}, float(found.totals.backing_off)),
    ]
