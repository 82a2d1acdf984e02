"""Allocations: the attempts of a workflow's ranks, and why one waits."""

from logyard_api.bodies import Answer, Count, Reply
from logyard_api.operations import Routes, ViewQuery
from logyard_api.paging import ListQuery
from logyard_api.yard import Yard
from logyard_projections.answers.asking import page_size
from logyard_projections.answers.explanation import Explanation
from logyard_projections.answers.stages import WorkflowStage, allocations_of
from logyard_projections.answers.why import explain
from logyard_projections.view import View

routes = Routes("allocations")


class AllocationsQuery(ListQuery, frozen=True):
    """Which attempts.

    stage: only those of this stage
    rank: only those of this rank of the stage
    """

    stage: str = ""
    rank: Count | None = None


class AllocationList(Reply, frozen=True):
    """A page of attempts, by stage, rank and attempt.

    allocations: the attempts; ranks that were never placed have none yet
    pageToken: for the next page; empty at the end
    position: of the view
    """

    allocations: tuple[WorkflowStage, ...]
    page_token: str
    position: int


@routes.add("GET", "/v4/workflows/{w}/allocations")
async def list_allocations(yard: Yard, w: str, query: AllocationsQuery) -> Answer[AllocationList]:
    """List the attempts of a workflow's ranks."""
    await yard.must_know(w)

    def question(view: View) -> AllocationList:
        page = allocations_of(
            view,
            w,
            stage=query.stage,
            rank=query.rank,
            token=query.page_token,
            limit=page_size(query.page_size),
        )
        return AllocationList(
            allocations=page.rows, page_token=page.token, position=view.mark.position
        )

    return await yard.look(question)


@routes.add("GET", "/v4/workflows/{w}/allocations/{a:path}/explain")
async def explain_allocation(yard: Yard, w: str, a: str, query: ViewQuery) -> Answer[Explanation]:
    """Explain why an allocation waits, runs or has ended, with the positions that it rests on.

    `a` is an allocation's full id, or STAGE, STAGE/RANK or STAGE/RANK#ATTEMPT of the workflow.
    """
    name = a if a == w or a.startswith(f"{w}/") else f"{w}/{a}"
    return await yard.find(
        lambda view: explain(view, name, yard.now()),
        f"there is no allocation {name!r}; `logyard workflow status {w}` shows its stages",
    )
