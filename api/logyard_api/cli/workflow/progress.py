"""How far a workflow is, folded from its own events."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from logyard_api.cli.units import millis

State = Literal["waits", "queued", "running", "done", "failed", "canceled"]
Status = Literal["submitted", "running", "stopping", "finished", "failed", "canceled"]

OVER: frozenset[Status] = frozenset({"finished", "failed", "canceled"})


@dataclass
class Stage:
    """One stage: `total` ranks, of which `running` run and `done` finished well."""

    name: str
    kind: str
    title: str
    needs: tuple[str, ...]
    total: int
    state: State = "waits"
    running: set[str] = field(default_factory=set[str])
    done: int = 0
    failed: int = 0
    began_ms: int = 0
    ended_ms: int = 0
    error: str = ""

    @property
    def waiting(self) -> int:
        """Ranks that neither run nor ended."""
        return max(0, self.total - self.done - self.failed - len(self.running))


@dataclass(frozen=True)
class Ended:
    """How an attempt ended."""

    outcome: str
    exit_code: int | None
    signal: int | None

    @property
    def code(self) -> int:
        """The exit code; 128 and the signal where one ended it; 1 where it never ran."""
        if self.outcome == "finished":
            return 0
        return 128 + self.signal if self.signal is not None else self.exit_code or 1


class Progress:
    """A workflow as its events tell it so far."""

    def __init__(self) -> None:
        self.workflow = ""
        self.name = ""
        self.status: Status = "submitted"
        self.stages: dict[str, Stage] = {}
        self.position = 0
        self.began_ms = 0
        self.ended_ms = 0
        self.failed_stage = ""
        self.error = ""
        self.ended: dict[tuple[str, int], Ended] = {}
        """The last attempt of each rank that ended, by stage and rank."""
        self.failures: list[str] = []
        """Allocations that did not end well, in the order in which they ended."""

    @property
    def over(self) -> bool:
        """Whether nothing of it will happen any more."""
        return self.status in OVER

    def code_of(self, stage: str) -> int:
        """The exit code of a stage: of its only rank, or the first that is not 0 by rank."""
        codes = [end.code for (name, _), end in sorted(self.ended.items()) if name == stage]
        return next((code for code in codes if code), 0 if codes else 1)

    def feed(self, event: Mapping[str, Any]) -> None:
        """Take in the next event."""
        self.position = int(event["logyardposition"])
        at_ms = millis(str(event["time"]))
        noun, _, verb = str(event["type"]).removeprefix("logyard.").partition(".")
        data: Mapping[str, Any] = event.get("data", {})
        match noun:
            case "workflow":
                self._workflow(verb, data, at_ms)
            case "stage":
                if stage := self.stages.get(str(data.get("stage"))):
                    _stage(stage, verb, data, at_ms)
            case "allocation":
                self._allocation(verb, data)
            case _:
                pass

    def _workflow(self, verb: str, data: Mapping[str, Any], at_ms: int) -> None:
        match verb:
            case "submitted":
                self.workflow, self.name = str(data["workflow"]), str(data.get("name", ""))
                self.began_ms = at_ms
                self.stages = _stages(data["definition"])
            case "started":
                self.status = "running"
            case "stopping":
                self.status = "stopping"
            case "finished" | "failed" | "canceled":
                self.status, self.ended_ms = verb, at_ms
                self.failed_stage = str(data.get("stage", ""))
                self.error = str(data.get("error", ""))
            case _:
                pass

    def _allocation(self, verb: str, data: Mapping[str, Any]) -> None:
        allocation = str(data["allocation"])
        name, rank = stage_and_rank(allocation)
        stage = self.stages.get(name)
        if stage is None:
            return
        match verb:
            case "started":
                stage.running.add(allocation)
            case "ended":
                stage.running.discard(allocation)
                self.ended[name, rank] = Ended(
                    str(data.get("outcome")), data.get("exit_code"), data.get("signal")
                )
                if data.get("outcome") == "finished":
                    stage.done += 1
                else:
                    stage.failed += 1
                    self.failures.append(allocation)
            case "requeued":
                stage.failed -= 1
                self.ended.pop((name, rank), None)
            case _:
                pass


def stage_and_rank(allocation: str) -> tuple[str, int]:
    """`render` and 17 of `wf-3f8m/render/17#2`."""
    stage, _, tail = allocation.partition("/")[2].rpartition("/")
    return stage, int(tail.partition("#")[0])


def _stage(stage: Stage, verb: str, data: Mapping[str, Any], at_ms: int) -> None:
    match verb:
        case "ready":
            stage.state = "queued"
        case "started":
            stage.state, stage.began_ms = "running", at_ms
        case "finished":
            stage.state, stage.ended_ms = "done", at_ms
        case "failed":
            stage.state, stage.ended_ms = "failed", at_ms
            stage.error = str(data.get("error", ""))
        case "canceled":
            stage.state, stage.ended_ms = "canceled", at_ms
            stage.error = str(data.get("reason", ""))
        case _:
            pass


def _stages(definition: Any) -> dict[str, Stage]:
    from msgspec import convert

    from logyard_domain.definition import Workflow, resolved
    from logyard_domain.plan import plan

    return {
        stage.name: Stage(
            stage.name, stage.kind, stage.title, stage.needs, stage.last - stage.first + 1
        )
        for stage in plan(resolved(convert(definition, Workflow)))
    }
