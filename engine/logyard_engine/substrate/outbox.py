"""What a node has to report: gathered while a report is under way, sent in one."""

from logyard_domain.commands import Began, Ended, Report


class Outbox:
    """News by allocation. Nothing leaves it before it is acknowledged.

    What an allocation does that took over the room of another is not told before the end of that
    one: ends are told when all output has been carried, which may take longer for the first.
    """

    def __init__(self, node: str) -> None:
        self._node = node
        self._began: dict[str, Began] = {}
        self._ended: dict[str, Ended] = {}
        self._removed: dict[str, None] = {}
        self._in_flight: Report | None = None
        self._behind: dict[str, str] = {}
        """Allocation -> the one before it, whose end is not told yet; `_following` is the same from
        the other side.
        """
        self._following: dict[str, str] = {}
        self._early: dict[str, Began | Ended] = {}
        """What such allocations have to tell meanwhile."""

    def __bool__(self) -> bool:
        return bool(self._in_flight or self._began or self._ended or self._removed or self._early)

    @property
    def waiting(self) -> bool:
        """Whether there is news and no report under way."""
        return not self._in_flight and bool(self._began or self._ended or self._removed)

    def behind(self, allocation: str, before: str) -> None:
        """It begins when the one before it ends."""
        self._behind[allocation] = before
        self._following[before] = allocation

    def began(self, allocation: str, started_at: int) -> None:
        began = Began(allocation, started_at)
        if allocation in self._behind:
            self._early[allocation] = began
        else:
            self._began[allocation] = began

    def ended(self, ended: Ended) -> None:
        name = ended.allocation
        if name in self._behind:
            if ended.started_at:
                self._early[name] = ended
                return
            self._left(name)
        # An end tells the start too.
        self._began.pop(name, None)
        self._ended[name] = ended
        self.passed(name)

    def passed(self, allocation: str) -> None:
        """Its end is told, or nobody wants to hear of it."""
        following = self._following.pop(allocation, None)
        if following is None:
            return
        del self._behind[following]
        match self._early.pop(following, None):
            case Began() as began:
                self._began[following] = began
            case Ended() as ended:
                self.ended(ended)
            case None:
                pass

    def _left(self, allocation: str) -> None:
        """It never began: who is behind it moves up."""
        before = self._behind.pop(allocation)
        del self._following[before]
        following = self._following.pop(allocation, None)
        if following is not None:
            self.behind(following, before)

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
        self._early = {}
