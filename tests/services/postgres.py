"""A private PostgreSQL server from the system's binaries, for the time of a test session."""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import psycopg
import pytest
from psycopg.sql import SQL, Identifier

_SETTINGS = """
fsync = {fsync}
full_page_writes = {fsync}
listen_addresses = '127.0.0.1'
port = {port}
unix_socket_directories = ''
max_connections = 50
shared_buffers = 64MB
"""


def binaries() -> Path | None:
    """Folder of the newest installed server's binaries."""
    found = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    if found:
        return max(found, key=lambda folder: float(folder.parent.name))
    on_path = shutil.which("initdb")
    return Path(on_path).parent if on_path else None


class PostgresServer:
    """A server on a free port of 127.0.0.1 that trusts every login.

    It refuses to run as root, so root starts it as the user ``postgres``.
    """

    def __init__(self, bin_folder: Path, *, fsync: bool = False) -> None:
        self._bin = bin_folder
        self._as = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
        if os.geteuid() != 0:
            self._as = []
        self._folder = Path(tempfile.mkdtemp(prefix="logyard-postgres-"))
        if self._as:
            shutil.chown(self._folder, "postgres", "postgres")
        self._data = self._folder / "data"
        self._names = count(1)
        self._free: list[str] = []
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self._run("initdb", "--auth=trust", "--username=postgres", "--no-sync", "--encoding=UTF8")
        settings = _SETTINGS.format(fsync="on" if fsync else "off", port=self.port)
        with (self._data / "postgresql.conf").open("a") as file:
            file.write(settings)
        self.start()

    def start(self) -> None:
        """Start, and wait until it takes connections."""
        self._run("pg_ctl", "start", "--wait", "--silent", f"--log={self._folder / 'server.log'}")

    def stop(self, mode: str = "fast") -> None:
        """Stop; `mode` as pg_ctl has it, of which ``immediate`` is a crash."""
        self._run("pg_ctl", "stop", "--wait", "--silent", f"--mode={mode}")

    def close(self) -> None:
        """Stop, and delete everything."""
        self.stop("immediate")
        shutil.rmtree(self._folder)

    def url(self, database: str, port: int | None = None) -> str:
        return f"postgresql://postgres@127.0.0.1:{port or self.port}/{database}"

    def new_database(self) -> str:
        """URL of an empty database that nobody else uses; it goes with the server."""
        if self._free:
            return self._free.pop()
        name = f"test_{next(self._names)}"
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        return self.url(name)

    def release(self, url: str) -> None:
        """Empty a database, ending all sessions in it, so that another test may have it: that
        costs far less than making one.
        """
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            connection.execute(f"ALTER DATABASE {connection.info.dbname} RESET ALL".encode())
            schemas = connection.execute(
                "SELECT nspname FROM pg_namespace "
                "WHERE nspname NOT LIKE 'pg\\_%' AND nspname <> 'information_schema'"
            ).fetchall()
            for (schema,) in schemas:
                connection.execute(SQL("DROP SCHEMA {} CASCADE").format(Identifier(schema)))
            connection.execute("CREATE SCHEMA public")
        self._free.append(url)

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [*self._as, str(self._bin / program), f"--pgdata={self._data}", *arguments],
            cwd=self._folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        if done.returncode:
            log = self._folder / "server.log"
            raise RuntimeError(f"{program}: {done.stderr}{log.read_text() if log.exists() else ''}")


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """The session's server; without the binaries the test is skipped."""
    folder = binaries()
    if folder is None:
        pytest.skip("no PostgreSQL server binaries (Debian: apt-get install postgresql)")
    server = PostgresServer(folder)
    yield server
    server.close()


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """URL of an empty database for one test."""
    url = postgres_server.new_database()
    yield url
    postgres_server.release(url)
