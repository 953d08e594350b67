"""A private PostgreSQL cluster in a temporary folder, on a unix socket, run by another user than root."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

NOT_THERE = "no PostgreSQL (on Debian: apt-get install postgresql)"


def programs() -> Path | None:
    """Return the folder of initdb and pg_ctl."""
    folders = [Path(found).resolve().parent for found in [shutil.which("initdb")] if found]
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda folder: folder.parent.name, reverse=True)
    return next((folder for folder in folders if (folder / "initdb").exists() and (folder / "pg_ctl").exists()), None)


class Cluster:
    """A running cluster."""

    def __init__(self, folder: Path, settings: dict[str, str]) -> None:
        found = programs()
        assert found is not None
        self.programs, self.folder, self.settings = found, folder, settings
        self.user = _user()
        self._run("initdb", "-D", folder / "data", "-U", "ledger", "-A", "trust", "-E", "UTF8", "--no-sync")
        self.start()

    def start(self) -> None:
        options = {"listen_addresses": "", "unix_socket_directories": str(self.folder), **self.settings}
        told = " ".join(f"-c {name}='{value}'" for name, value in options.items())
        self._run("pg_ctl", "-D", self.folder / "data", "-w", "-l", self.folder / "log", "-o", told, "start")

    def stop(self, mode: str = "fast") -> None:
        self._run("pg_ctl", "-D", self.folder / "data", "-w", "-m", mode, "stop")

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://ledger@/{database}?host={quote(str(self.folder), safe='')}"

    def made(self, database: str, copied_from: str = "template1") -> str:
        """Make a database, and return its address."""
        import psycopg  # a few tests need it, and every test reads this file
        from psycopg import sql

        with psycopg.connect(self.url(), autocommit=True) as connection:
            how = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
            connection.execute(how.format(sql.Identifier(database), sql.Identifier(copied_from)))
        return self.url(database)

    def _run(self, program: str, *arguments: object) -> None:
        command = [str(self.programs / program), *map(str, arguments)]
        if self.user is not None:
            command = ["runuser", "-u", self.user, "--", *command]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=self.folder)
        assert done.returncode == 0, f"{program}: {done.stderr}{done.stdout}"


def _user() -> str | None:
    """Return who runs the server: initdb refuses root."""
    if os.geteuid() != 0:
        return None
    names = {one.pw_name for one in pwd.getpwall()}
    return next(name for name in ("postgres", "nobody") if name in names)


@contextmanager
def cluster(**settings: str) -> Iterator[Cluster]:
    """Run a cluster with these settings, in memory where there is some; sockets need a short name."""
    memory = Path("/dev/shm")  # noqa: S108
    folder = Path(tempfile.mkdtemp(prefix="gf-pg-", dir=memory if memory.is_dir() else None))
    user = _user()
    if user is not None:
        os.chown(folder, pwd.getpwnam(user).pw_uid, -1)
    running = None
    try:
        running = Cluster(folder, settings)
        yield running
    finally:
        if running is not None:
            running.stop("immediate")
        shutil.rmtree(folder, ignore_errors=True)
