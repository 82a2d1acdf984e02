"""Allocations between their placement and their end."""

import msgspec

from logyard_domain.events import AllocationEnded, AllocationPlaced
from logyard_domain.records import Record
from logyard_projections.picture.picture import Bar, Piece, Promise, Stop
from logyard_projections.picture.waits import Stage, Turn


class Life(msgspec.Struct, kw_only=True):
    """An allocation that has a place. `begin` is when it got its room, 0 until then.

    While it is `behind` another one it gets that one's room next; `follower` gets its own. While
    `evicting`, its victims have not left yet.
    """

    id: str
    stage: Stage
    rank: int
    attempt: int
    turn: Turn
    event: AllocationPlaced
    placed: int
    placed_position: int
    waits: list[tuple[str, int]]
    promise: Promise | None
    chunks: dict[str, int]
    pieces: tuple[Piece, ...] = ()
    behind: str = ""
    follower: str = ""
    evicting: bool = False
    begin: int = 0
    begin_position: int = 0
    started: int = 0
    started_position: int = 0
    stop: Stop | None = None

    @property
    def wait(self) -> str:
        """What it waits for although it is placed; nothing once it has its room."""
        if self.begin:
            return ""
        return "behind" if self.behind else "eviction"

    def bar(self, until: int, ended: tuple[Record, AllocationEnded] | None = None) -> Bar:
        """As it is drawn: to its end, or (there is none yet) to `until`."""
        plan, turn = self.stage.plan, self.turn
        record, event = ended or (None, None)
        return Bar(
            owner=self.stage.owner,
            stage=plan.name,
            stage_kind=plan.kind,
            rank=self.rank,
            array=plan.array,
            attempt=self.attempt,
            shape=self.stage.number,
            pieces=self.pieces,
            kind=self.event.kind,
            revision=self.event.revision,
            queued=turn.queued,
            queued_position=turn.queued_position,
            requeued=turn.requeued,
            ready=turn.ready,
            ready_position=turn.ready_position,
            placed=self.placed,
            placed_position=self.placed_position,
            begin=self.begin,
            begin_position=self.begin_position,
            started=self.started,
            started_position=self.started_position,
            end=record.at if record else until,
            end_position=record.position if record else 0,
            outcome=event.outcome if event else "",
            exit_code=event.exit_code if event else None,
            signal=event.signal if event else None,
            peak_bytes=event.peak_bytes if event else 0,
            error=event.error if event else "",
            behind=self.event.behind,
            after=self.event.after,
            stop=self.stop,
            promise=self.promise,
            waits=tuple(self.waits),
        )
