"""Nodes: what there is, and closing, emptying, opening and removing them."""

from logyard_api.bodies import Answer, Body, Reply
from logyard_api.errors import invalid
from logyard_api.operations import Routes, ViewQuery
from logyard_api.paging import ListQuery
from logyard_api.yard import Yard
from logyard_domain.commands import AnyCommand, CordonNode, DrainNode, RemoveNode, UncordonNode
from logyard_projections.answers.nodes import NodeAnswer, NodeList, get_node, list_nodes

routes = Routes("nodes")


class CordonBody(Body, frozen=True):
    """Why it is closed.

    reason: a sentence for people
    """

    reason: str | None = None


class DrainBody(Body, frozen=True):
    """Why and how it is emptied.

    reason: a sentence for people
    evict: requeue what runs there instead of waiting for its end
    """

    reason: str | None = None
    evict: bool | None = None


class UncordonBody(Body, frozen=True):
    """Nothing to say."""


class Done(Reply, frozen=True):
    """What was acted on.

    id: of the node
    position: of the log, at which it is done
    """

    id: str
    position: int


@routes.add("POST", "/v4/nodes/{id}:cordon")
async def cordon_node(yard: Yard, id: str, body: CordonBody) -> Answer[Done]:
    """Close a node: nothing new is placed there, what runs goes on."""
    return await _act(yard, id, CordonNode(node=id, reason=body.reason or ""))


@routes.add("POST", "/v4/nodes/{id}:uncordon")
async def uncordon_node(yard: Yard, id: str, body: UncordonBody) -> Answer[Done]:
    """Open a node again; also ends a drain."""
    return await _act(yard, id, UncordonNode(node=id))


@routes.add("POST", "/v4/nodes/{id}:drain")
async def drain_node(yard: Yard, id: str, body: DrainBody) -> Answer[Done]:
    """Close a node and empty it."""
    command = DrainNode(node=id, reason=body.reason or "", evict=bool(body.evict))
    return await _act(yard, id, command)


@routes.add("DELETE", "/v4/nodes/{id}")
async def remove_node(yard: Yard, id: str) -> Answer[Done]:
    """Forget a node that is lost, or that is empty."""
    return await _act(yard, id, RemoveNode(node=id))


async def _act(yard: Yard, node: str, command: AnyCommand) -> Answer[Done]:
    receipt = await yard.ask(command, f"{command.__struct_config__.tag} {node}")
    return Answer(Done(id=node, position=receipt.position), receipt.position)


class NodesQuery(ListQuery, frozen=True):
    """Which nodes."""


@routes.add("GET", "/v4/nodes")
async def get_nodes(yard: Yard, query: NodesQuery) -> Answer[NodeList]:
    """List nodes by name."""
    if query.order_by:
        raise invalid("query: orderBy: nodes are listed by name; leave it out")
    return await yard.look(
        lambda view: list_nodes(
            view,
            cluster=yard.cluster,
            size=query.page_size,
            token=query.page_token,
            filter=query.filter,
        )
    )


@routes.add("GET", "/v4/nodes/{id}")
async def get_one_node(yard: Yard, id: str, query: ViewQuery) -> Answer[NodeAnswer]:
    """One node, and what runs on it."""
    return await yard.find(
        lambda view: get_node(view, id, cluster=yard.cluster),
        f"there is no node {id!r}; `logyard node list` shows those that there are",
    )
