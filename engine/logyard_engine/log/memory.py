"""Recorder in memory: for simulations, and for tests of what stands on the log."""

from bisect import bisect_right
from collections.abc import Sequence

from eventsourcing.persistence import StoredEvent
from eventsourcing.popo import POPOAggregateRecorder


class MemoryRecorder(POPOAggregateRecorder):
    """Keeps one cluster's log for as long as the object lives."""

    patience_s: Sequence[float] = ()

    def insert_states(
        self, cluster: str, first: int, tags: Sequence[str], states: Sequence[bytes]
    ) -> None:
        self.insert_events(
            [
                StoredEvent(cluster, position, tag, state)
                for position, (tag, state) in enumerate(zip(tags, states, strict=True), first)
            ]
        )

    def select_states(
        self, cluster: str, after: int, upto: int, limit: int
    ) -> list[tuple[int, bytes]]:
        # The inherited select_events walks over the whole stream each time.
        with self._database_lock:
            events = self._stored_events
            start = bisect_right(events, after, key=_position)
            return [
                (event.originator_version, event.state)
                for event in events[start : start + limit]
                if event.originator_id == cluster and event.originator_version <= upto
            ]

    def last_states(self, cluster: str, limit: int) -> list[tuple[int, bytes]]:
        newest = self.select_events(cluster, desc=True, limit=limit)
        return [(event.originator_version, event.state) for event in reversed(newest)]

    def any_cluster(self) -> str | None:
        with self._database_lock:
            return str(self._stored_events[0].originator_id) if self._stored_events else None

    def close(self) -> None:
        """Nothing to let go of: a log opened later over this recorder finds what was written."""


def _position(event: StoredEvent) -> int:
    return event.originator_version
