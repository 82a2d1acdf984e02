"""Scratch folders: one for a workflow on a node, handed on while empty.

Making and removing a folder for each of many small workflows costs a file system more than the
work itself may, so an empty one is kept for the next workflow.
"""

import os
from pathlib import Path

_SPARE_MAX = 256


class Scratch:
    """The scratch folders below `root`. One that is not empty is put into `aside` for removal."""

    def __init__(self, root: Path, aside: Path) -> None:
        self._root = root
        self._aside = aside
        self._folders: dict[str, str] = {}
        self._spare: list[str] = []
        root.mkdir(parents=True, exist_ok=True)
        self._next = 1 + max((int(one) for one in os.listdir(root) if one.isdigit()), default=0)

    def folder(self, workflow: str) -> str:
        """The folder of a workflow. Raises OSError."""
        path = self._folders.get(workflow)
        if path is None:
            path = self._spare.pop() if self._spare else self._made()
            self._folders[workflow] = path
        return path

    def lacks(self, workflow: str) -> bool:
        """Whether a folder has to be made for this workflow."""
        return not self._spare and workflow not in self._folders

    def spare(self, workflow: str) -> bool:
        """Keep the workflow's folder for the next one, if it has one that is empty."""
        path = self._folders.get(workflow)
        try:
            if path is None or os.listdir(path):
                return False
            os.chmod(path, 0o700)
        except OSError:
            return False
        del self._folders[workflow]
        self._spare.append(path)
        return True

    def adopt(self, workflow: str, path: str) -> None:
        """The workflow has this folder from an earlier agent."""
        self._folders.setdefault(workflow, path)

    def retire(self, workflow: str) -> Path | None:
        """The workflow is quiet: what has to be removed."""
        if len(self._spare) < _SPARE_MAX and self.spare(workflow):
            return None
        path = self._folders.pop(workflow, None)
        if path is None:
            return None
        try:
            aside = self._aside / f"scratch~{os.path.basename(path)}"
            os.rename(path, aside)
        except OSError:
            # A job removed it.
            return None
        return aside

    def clear(self) -> None:
        """Nothing runs: put all aside."""
        self._folders.clear()
        self._spare.clear()
        os.rename(self._root, self._aside / "scratch")
        self._root.mkdir()

    def _made(self) -> str:
        path = f"{self._root}/{self._next}"
        self._next += 1
        os.mkdir(path, 0o700)
        return path
