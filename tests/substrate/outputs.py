"""What a job of a test printed on the node."""

from pathlib import Path

from logyard_engine.substrate.printed import Printed

MOST = 1 << 24


def printed(folder: Path, name: str, stream: str = "out", node: str = "n1") -> str:
    """By the allocation's name, for instance ``wf-1/s/0#1``; `folder` holds ``logs``."""
    found = Printed(folder / "logs", node, name)
    return found.read("out" if stream == "out" else "err", 0, MOST).decode()
