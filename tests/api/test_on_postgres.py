"""The whole server on PostgreSQL: log and views, through a kill and a restart."""

from logyard_engine.log.opening import open_for_reading
from logyard_engine.log.verify import verify
from tests.services.postgres import PostgresServer
from tests.services.server import ServerMaker

TEXT = """
version: v4
jobs:
  many:
    command: [sh, -c, 'echo task $FB_TASK_ID']
    task-array: {start: 1, end: 20}
  last:
    command: ["true"]
    depends-on: [{name: many}]
"""


def test_work_runs_and_survives_a_kill(
    postgres_server: PostgresServer, make_server: ServerMaker
) -> None:
    log, views = postgres_server.new_database(), postgres_server.new_database()
    server = make_server(node_cores=2, log=log, projections=views).start()
    first = server.submit(TEXT)["id"]
    assert server.outcome(first) == "STAGE_STATUS_FINISHED"
    second = server.submit(TEXT)["id"]
    server.kill()
    server.start()
    assert server.outcome(second) == "STAGE_STATUS_FINISHED"
    stages = server.get(f"/v4/workflows/{first}:status")["status"]["stages"]
    assert {stage["status"] for stage in stages} == {"STAGE_STATUS_FINISHED"}
    assert not (server.folder / "data" / "log.sqlite").exists()
    assert server.stop() == 0
    reader = open_for_reading(log)
    assert verify(reader.read_states()).count == reader.position > 100
    reader.close()
