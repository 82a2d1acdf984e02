"""The server process is killed 25 times while 300 jobs are submitted and run for real.

Afterwards: whatever was acknowledged is there, no attempt ran twice, every job ended exactly once,
and the log holds; a flipped byte in it is found.
"""

import sqlite3
from collections import Counter
from functools import partial
from http.client import HTTPException
from pathlib import Path
from random import Random
from threading import Event, Thread
from typing import Any

import pytest

from logyard_domain.codec import Damaged, decode
from logyard_domain.records import Record
from logyard_engine.log.opening import open_for_reading
from logyard_engine.log.sqlite import TABLE
from logyard_engine.log.verify import verify
from tests.engine.lives import follow_lives
from tests.services.server import ServerMaker, YardServer, until

KILLS = 25
WORKFLOWS = 60
RANKS = 4
"""Of the array in each workflow; with one more job after it, 300 jobs in all."""

TEXT = """
version: v4
jobs:
  many:
    script: |
      #!/bin/sh
      echo "$LOGYARD_ALLOCATION" >> {ran}
      sleep 0.0$((FB_TASK_ID * 2))
    task-array: {{start: 1, end: 4}}
  last:
    command: [sh, -c, 'echo "$LOGYARD_ALLOCATION" >> {ran}']
    depends-on: [{{name: many}}]
"""


class Submitter(Thread):
    """Submits until everything is acknowledged, whatever becomes of the server meanwhile."""

    def __init__(self, server: YardServer, text: str) -> None:
        super().__init__()
        self.server = server
        self.text = text
        self.acknowledged: dict[str, str] = {}
        self.go = Event()

    def run(self) -> None:
        for number in range(WORKFLOWS):
            key = f"crash-{number}"
            while key not in self.acknowledged:
                self.go.wait()
                try:
                    answer = self.server.ask(
                        "POST",
                        "/v4/workflows",
                        {"name": key, "workflowId": key, "rawSpecification": self.text},
                    )
                except (OSError, HTTPException):
                    continue
                if answer.status == 200:
                    self.acknowledged[key] = answer.json["id"]


@pytest.mark.slow
def test_nothing_is_lost_and_nothing_runs_twice(make_server: ServerMaker, tmp_path: Path) -> None:
    ran = tmp_path / "ran.txt"
    ran.touch()
    server = make_server(node_cores=4).start()
    submitter = Submitter(server, TEXT.format(ran=ran))
    submitter.go.set()
    submitter.start()
    dice = Random(7)
    for kill in range(KILLS):
        # Let some more of the work happen, then kill wherever the server is just now.
        wanted = (kill + 1) * WORKFLOWS * (RANKS + 1) // (KILLS + 5) - dice.randrange(8)
        until(partial(_reached, ran, wanted), 120)
        submitter.go.clear()
        server.kill()
        server.start()
        submitter.go.set()
    submitter.join(120)
    assert not submitter.is_alive()
    for id in submitter.acknowledged.values():
        assert server.outcome(id, 120) == "STAGE_STATUS_FINISHED"
    assert server.stop() == 0

    starts = Counter(ran.read_text().split())
    assert set(starts.values()) == {1}, "an attempt ran twice"
    records = _records(server)
    _judge(records, submitter.acknowledged, starts)
    _flip_a_byte(server)


def _judge(records: list[Record], acknowledged: dict[str, str], starts: Counter[str]) -> None:
    states = follow_lives(records)
    workflows = {name for kind, name in states if kind == "workflow"}
    assert workflows == set(acknowledged.values()) and len(workflows) == WORKFLOWS
    allocations = {name: state for (kind, name), state in states.items() if kind == "allocation"}
    assert len(allocations) == WORKFLOWS * (RANKS + 1)
    assert set(allocations.values()) == {"ended"}
    finished = [e for e in map(_finished, records) if e]
    assert len(finished) == len(set(finished)) == len(allocations)
    assert set(finished) <= set(starts)
    terms = sum(1 for r in records if type(r.event).__name__ == "ServerStarted")
    assert terms == KILLS + 1


def _finished(record: Record) -> str:
    event: Any = record.event
    over = type(event).__name__ == "AllocationEnded" and event.outcome == "finished"
    return event.allocation if over else ""


def _records(server: YardServer) -> list[Record]:
    log = open_for_reading(server.folder / "data")
    states = list(log.read_states())
    log.close()
    assert verify(iter(states)).count == len(states)
    return [decode(position, state) for position, state in states]


def _flip_a_byte(server: YardServer) -> None:
    """Change one byte of one record behind the program's back."""
    connection = sqlite3.connect(server.folder / "data" / "log.sqlite")
    position = 100
    [(state,)] = connection.execute(
        f"SELECT state FROM {TABLE} WHERE originator_version = ?", (position,)
    ).fetchall()
    changed = bytearray(state)
    changed[len(changed) // 3] ^= 1
    connection.execute(
        f"UPDATE {TABLE} SET state = ? WHERE originator_version = ?", (bytes(changed), position)
    )
    connection.commit()
    connection.close()
    log = open_for_reading(server.folder / "data")
    with pytest.raises(Damaged) as found:
        verify(log.read_states())
    log.close()
    assert found.value.position == position


def _reached(path: Path, lines: int) -> bool:
    return path.read_bytes().count(b"\n") >= lines
