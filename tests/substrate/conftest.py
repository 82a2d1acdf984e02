"""A real node with its keeper, asked by a desk in place of the server."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from logyard_engine.substrate.desk import Desk
from logyard_engine.substrate.inventory import take_inventory
from logyard_engine.substrate.node import EmbeddedNode


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def start_node(tmp_path: Path, desk: Desk) -> Iterator[Callable[[], EmbeddedNode]]:
    """Starts the node of `tmp_path`; again after a stop, as after a restart. Ends its jobs at
    last.
    """
    nodes: list[EmbeddedNode] = []

    def start() -> EmbeddedNode:
        node = EmbeddedNode(
            "n1",
            tmp_path / "node",
            logs=tmp_path / "logs",
            results=tmp_path / "results",
            volumes=tmp_path / "volumes",
            offer=desk.offer,
            beat=desk.beat,
            inventory=take_inventory(cores=4, memory=1 << 30, devices={"acme.com/fpga": 3}),
            heartbeat_s=0.2,
        )
        desk.connect(node.deliver)
        node.start()
        nodes.append(node)
        return node

    yield start
    desk.away = False
    if nodes:
        # Whatever a test left running must go; a new node finds it if the last one was stopped.
        if not nodes[-1].stop("kill", 20):
            pytest.fail("the node did not end")


@pytest.fixture
def node(start_node: Callable[[], EmbeddedNode]) -> EmbeddedNode:
    return start_node()
