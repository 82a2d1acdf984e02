"""Progress folded from the events of a simulated cluster, and how it looks on the screen."""

import json
from collections.abc import Callable

import msgspec

from logyard_api.cli.workflow.progress import Progress
from logyard_api.cli.workflow.screen import lines
from logyard_domain.commands import StopWorkflow
from logyard_engine.log.opening import open_log
from logyard_engine.simulation.nodes import Run
from logyard_engine.simulation.yard import Yard
from logyard_projections.answers.streams import cloud_event
from logyard_projections.streams import workflow_of
from logyard_workflows_dsl import load

TILES = """
version: v4
jobs:
  prepare: {command: ["true"]}
  render:
    command: ["true"]
    task-array: {start: 1, end: 8, concurrency: 3}
    policy: {retry: {attempts: 1}}
    depends-on: [{name: prepare}]
  assemble:
    command: ["true"]
    depends-on: [{name: render}]
"""


def yard_with(script: Callable[[str], Run]) -> tuple[Yard, str]:
    """A yard of four cores with the tiles workflow started."""
    yard = Yard(open_log("memory:", "test"), {"n1": 4}, script)
    return yard, yard.submit(load(TILES).workflow, "tiles")


def progress_of(yard: Yard, workflow: str) -> Progress:
    """What somebody who follows the workflow's events knows by now."""
    progress = Progress()
    for record in yard.records:
        if workflow_of(record.event) == workflow:
            progress.feed(json.loads(msgspec.json.encode(cloud_event(record))))
    return progress


def test_a_workflow_from_start_to_end() -> None:
    yard, workflow = yard_with(lambda _: Run())
    assert lines(progress_of(yard, workflow), {"prepare": "no node"})[1:] == [
        "  render    waits for prepare",
        "  assemble  waits for render",
    ]
    yard.advance(2_500)
    progress = progress_of(yard, workflow)
    render = progress.stages["render"]
    assert (render.total, render.done, len(render.running), render.waiting) == (8, 3, 3, 2)
    shown = lines(progress, {"render": "no free cpu"})
    assert shown[0].startswith("  prepare   done      1")
    assert shown[1] == (
        "  render    [##########------------------]  3/8   3 running, 2 waiting (no free cpu)"
    )
    yard.run()
    progress = progress_of(yard, workflow)
    assert progress.over
    assert (progress.status, progress.name, progress.failures) == ("finished", "tiles", [])
    assert [stage.state for stage in progress.stages.values()] == ["done"] * 3
    assert progress.code_of("render") == 0
    assert lines(progress, {})[1].endswith("8/8")


def test_a_rank_that_is_tried_again_and_fails_for_good() -> None:
    def script(allocation: str) -> Run:
        if "/render/5#" in allocation:
            return Run(exit_code=7)
        return Run()

    yard, workflow = yard_with(script)
    yard.run()
    progress = progress_of(yard, workflow)
    assert (progress.status, progress.failed_stage) == ("failed", "render")
    assert progress.failures == [f"{workflow}/render/5#1", f"{workflow}/render/5#2"]
    render = progress.stages["render"]
    assert (render.state, render.failed, render.running) == ("failed", 1, set())
    assert progress.code_of("render") == 7
    assert progress.code_of("assemble") == 1
    assert progress.stages["assemble"].state == "canceled"
    assert lines(progress, {})[1].startswith("  render    failed    ")


def test_a_rank_that_fails_once_ends_well() -> None:
    def script(allocation: str) -> Run:
        return Run(exit_code=1) if allocation.endswith("/2#1") else Run()

    yard, workflow = yard_with(script)
    yard.run()
    progress = progress_of(yard, workflow)
    assert progress.status == "finished"
    assert (progress.stages["render"].done, progress.stages["render"].failed) == (8, 0)
    assert progress.code_of("render") == 0


def test_a_workflow_that_is_stopped() -> None:
    yard, workflow = yard_with(lambda _: Run())
    yard.advance(500)
    yard.ask(StopWorkflow(workflow=workflow))
    yard.run()
    progress = progress_of(yard, workflow)
    assert progress.status == "canceled"
    assert {stage.state for stage in progress.stages.values()} == {"canceled"}


def test_many_stages_are_shown_on_one_screen() -> None:
    jobs = "".join(f"  j{n}: {{command: ['true']}}\n" for n in range(100))
    yard = Yard(open_log("memory:", "test"), {"n1": 4})
    workflow = yard.submit(load(f"version: v4\njobs:\n{jobs}").workflow)
    yard.advance(1_500)
    shown = lines(progress_of(yard, workflow), {})
    assert len(shown) == 31
    assert shown[-1] == "  and 70 more stages, done ones among them"
    assert not [line for line in shown if " done " in line.removesuffix(shown[-1])]
