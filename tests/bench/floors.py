"""What the machine can do without us: measured beside each run."""

import os
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

_SPAWNER = """
import os, sys
for _ in range(int(sys.argv[1])):
    os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)
"""


def spawns_per_second(count: int = 3_000, processes: int = 2) -> float:
    """`true` by posix_spawn and wait, one at a time in each of `processes` processes."""
    share = str(count // processes)
    began = time.perf_counter()
    running = [
        subprocess.Popen([sys.executable, "-S", "-E", "-c", _SPAWNER, share])
        for _ in range(processes)
    ]
    for one in running:
        one.wait()
    return count / (time.perf_counter() - began)


def inserts_per_second(path: Path, rows: list[bytes], batch: int) -> float:
    """Rows a second by raw executemany, WAL and synchronous FULL, `batch` rows a transaction."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute(
        "CREATE TABLE raw (id TEXT, version INTEGER, topic TEXT, state BLOB,"
        " PRIMARY KEY (id, version)) WITHOUT ROWID"
    )
    began = time.perf_counter()
    for start in range(0, len(rows), batch):
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(
            "INSERT INTO raw VALUES ('main', ?, 'allocation.placed', ?)",
            [(start + n, row) for n, row in enumerate(rows[start : start + batch])],
        )
        connection.execute("COMMIT")
    took = time.perf_counter() - began
    connection.close()
    os.unlink(path)
    return len(rows) / took
