"""Snapshots of a running server: a start after a crash begins with the newest one."""

from pathlib import Path

from logyard_api.snapshotting import Snapshotter
from logyard_domain import snapshot
from logyard_domain.commands import SubmitWorkflow
from logyard_domain.definition import Job, Workflow
from logyard_domain.world import World
from logyard_engine.clock import SystemClock
from logyard_engine.dispatch import Dispatch
from logyard_engine.log.opening import open_log
from logyard_engine.loop import Loop
from logyard_engine.recovery import recover
from logyard_engine.snapshots import Snapshots
from logyard_engine.turn import Engine


def test_the_world_is_kept_while_the_writer_works(tmp_path: Path) -> None:
    log = open_log(str(tmp_path), "main")
    clock = SystemClock()
    engine = Engine(World("main"), log)
    dispatch = Dispatch(clock)
    loop = Loop(engine, clock, dispatch, "test")
    dispatch.call = loop.call
    folder = Snapshots(tmp_path / "snapshots")
    snapshotter = Snapshotter(loop, log, folder, every=20)
    loop.subscribe(snapshotter.count)
    loop.start()
    definition = Workflow(jobs={"a": Job(command=("true",))})
    for number in range(30):
        command = SubmitWorkflow(
            key=f"k{number}", name="n", definition=definition, source="", user="ana"
        )
        loop.offer(command, "user:ana", "k").result()
    loop.stop()
    snapshotter.close()
    found = folder.newest(snapshot.FORMAT, log.position)
    assert found is not None and 20 <= found.position < log.position
    assert snapshot.dump(recover(log, folder)) == snapshot.dump(engine.world)
    assert snapshot.dump(recover(log)) == snapshot.dump(engine.world)
    log.close()
