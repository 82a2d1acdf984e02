"""What a node has to report: gathered while a report is under way, sent in one."""

from logyard_domain.commands import Began, Ended, Report


class Outbox:
    """News by allocation. Nothing leaves it before it is acknowledged."""

    def __init__(self, node: str) -> None:
        self._node = node
        self._began: dict[str, Began] = {}
        self._ended: dict[str, Ended] = {}
        self._removed: dict[str, None] = {}
        self._in_flight: Report | None = None

    def __bool__(self) -> bool:
        return bool(self._in_flight or self._began or self._ended or self._removed)

    @property
    def waiting(self) -> bool:
        """Whether there is news and no report under way."""
        return not self._in_flight and bool(self._began or self._ended or self._removed)

    def began(self, allocation: str, started_at: int) -> None:
        self._began[allocation] = Began(allocation, started_at)

    def ended(self, ended: Ended) -> None:
        # An end tells the start too.
        self._began.pop(ended.allocation, None)
        self._ended[ended.allocation] = ended

    def removed(self, workflow: str) -> None:
        self._removed[workflow] = None

    def take(self) -> Report | None:
        """The next report, if there is news and none is under way."""
        if not self.waiting:
            return None
        self._in_flight = Report(
            node=self._node,
            began=tuple(self._began.values()),
            ended=tuple(self._ended.values()),
            volumes_removed=tuple(self._removed),
        )
        self._began, self._ended, self._removed = {}, {}, {}
        return self._in_flight

    def acknowledged(self, report: Report) -> bool:
        """The report is durable; False if it is not the one under way (`clear` came between)."""
        if report is not self._in_flight:
            return False
        self._in_flight = None
        return True

    def failed(self, report: Report) -> None:
        """The report did not arrive: its news are to be sent again."""
        if not self.acknowledged(report):
            return
        ended = {one.allocation: one for one in report.ended}
        began = {one.allocation: one for one in report.began if one.allocation not in self._ended}
        self._ended = ended | self._ended
        self._began = began | self._began
        self._removed = dict.fromkeys(report.volumes_removed) | self._removed

    def clear(self) -> None:
        """Forget everything: the next `Sync` tells what is still to be said."""
        self._began, self._ended, self._removed, self._in_flight = {}, {}, {}, None
