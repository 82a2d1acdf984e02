"""Holds the lock of the folder in its argument until it is killed; says so when it has it."""

import sys
from pathlib import Path

from logyard_engine.log.lock import FolderLock

if __name__ == "__main__":
    with FolderLock(Path(sys.argv[1])):
        print("held", flush=True)
        sys.stdin.read()
