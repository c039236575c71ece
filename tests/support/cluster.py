"""A private PostgreSQL cluster: for tests, and for `make run-postgres`.

PostgreSQL refuses to run as root; if root starts it, it runs as an unprivileged user. Run as a
program, this module starts a cluster in a folder, runs a command with MOORAGE_DATABASE set to it,
and stops the cluster again:

    python -m tests.support.cluster FOLDER COMMAND [ARGUMENT ...]

The folder `-` is a temporary one that is removed afterwards. With any other folder, a command that
serves Moorage gets what other terminals need to find that ledger.
"""

import atexit
import importlib.util
import os
import pwd
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg

from moorage.serve.files import Files
from moorage.store.postgres.migrate import migrate
from tests.support.closing import Closing
from tests.support.guard import Guard

MIGRATED = "migrated"
"""The template of the databases that tests use."""

VERSION_MIN = 15
USERS = ("postgres", "nobody")
"""The user that runs the cluster when root starts it: the first of these that exists."""

SERVED = re.compile(r"moorage: serving (?P<url>\S+) ")

TOOLS = ("initdb", "pg_ctl", "postgres", "pg_basebackup")


class NoPostgres(Exception):
    """There is no PostgreSQL, or it does not start; the message says what to do."""


def binaries() -> Path:
    """Return the folder with the programs of the newest installed PostgreSQL.

    MOORAGE_POSTGRES_BIN names it; otherwise the packages of the distribution are searched, then
    the PATH, then the Python package pgserver, which contains a server.

    Raises:
        NoPostgres: no PostgreSQL of version 15 or later is installed.
    """
    named = os.environ.get("MOORAGE_POSTGRES_BIN")
    places = [Path(named)] if named else _installed()
    found = [(_version(place), place) for place in places if _complete(place)]
    good = [(version, place) for version, place in found if version >= VERSION_MIN]
    if not good:
        raise NoPostgres(
            "PostgreSQL 15 or later is not installed; install the server (Debian: postgresql), or "
            "set MOORAGE_POSTGRES_BIN to the folder of its programs"
        )
    return max(good)[1]


def _installed() -> list[Path]:
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    places += sorted(Path("/usr").glob("pgsql-*/bin"))
    if (found := shutil.which("initdb")) is not None:
        places.append(Path(found).resolve().parent)
    package = importlib.util.find_spec("pgserver")
    if not any(map(_complete, places)) and package is not None and package.origin is not None:
        places.append(Path(package.origin).parent / "pginstall" / "bin")
    return places


def _complete(place: Path) -> bool:
    return all((place / tool).is_file() for tool in TOOLS)


def _version(place: Path) -> int:
    command = [str(place / "postgres"), "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.search(r"(\d+)", done.stdout)
    return int(found[1]) if found else 0


class Cluster(Closing):
    """One server in a folder, reachable only through a socket there. Context manager.

    It ends when this process does, in any way.

    `durable` False: nothing is synced to the disk, which is faster and survives everything except
    the end of the machine.
    """

    def __init__(
        self,
        folder: Path | None = None,
        *,
        durable: bool = False,
        primary: "Cluster | None" = None,
    ) -> None:
        """Create the cluster, if the folder has none, and start it. Raises NoPostgres.

        With `primary` it is a standby of that one.
        """
        self._temporary = folder is None
        self.folder = folder or Path(tempfile.mkdtemp(prefix="moorage-pg-"))
        self.data = self.folder / "data"
        self.folder.mkdir(exist_ok=True)
        self._user = self._unprivileged()
        self._binaries = self._readable(binaries())
        if not self.data.exists():
            self._make(primary)
            self._configure(durable)
        self._protect()
        self.start()

    def _unprivileged(self) -> str | None:
        if os.geteuid() != 0:
            return None
        known = {entry.pw_name for entry in pwd.getpwall()}
        user = next(name for name in USERS if name in known)
        shutil.chown(self.folder, user)
        return user

    def _readable(self, place: Path) -> Path:
        """Copy the programs to where the unprivileged user can read them, if necessary."""
        if self._user is None or self._try([place / "postgres", "--version"]).returncode == 0:
            return place
        packages = place.parents[2]
        for part in (place.relative_to(packages).parent, Path("pgserver.libs")):
            if (packages / part).exists() and not (self.folder / part).exists():
                shutil.copytree(packages / part, self.folder / part, symlinks=True)
        return self.folder / place.relative_to(packages)

    def _make(self, primary: "Cluster | None") -> None:
        if primary is None:
            self._run("initdb", "-U", "moorage", "-A", "peer", "-E", "UTF8", "--locale=C", "-N")
        else:
            where = ("-h", str(primary.folder), "-U", "moorage")
            self._run("pg_basebackup", *where, "-R", "-c", "fast", "-N")

    def _configure(self, durable: bool) -> None:
        settings = {
            "listen_addresses": "''",
            "unix_socket_directories": f"'{self.folder}'",
            "unix_socket_permissions": "0700",
            "max_connections": "200",
            "fsync": "on" if durable else "off",
            "full_page_writes": "on" if durable else "off",
            "wal_level": "replica",
        }
        with (self.data / "postgresql.conf").open("a") as file:
            file.writelines(f"{name} = {value}\n" for name, value in settings.items())

    def _protect(self) -> None:
        """Admit the user of this process and the cluster's own, by their system accounts."""
        self.folder.chmod(0o700)
        names = {pwd.getpwuid(os.geteuid()).pw_name, *([self._user] if self._user else ())}
        rules = [f"local {database} all peer map=ours\n" for database in ("all", "replication")]
        (self.data / "pg_hba.conf").write_text("".join(rules))
        (self.data / "pg_ident.conf").write_text(
            "".join(f'ours "{name}" moorage\n' for name in sorted(names))
        )

    def _try(self, command: list[Any]) -> subprocess.CompletedProcess[str]:
        other: dict[str, Any] = {}
        if self._user is not None:
            entry = pwd.getpwnam(self._user)
            other = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
        try:
            return subprocess.run(
                [str(part) for part in command],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
                **other,
            )
        except OSError as error:
            return subprocess.CompletedProcess(command, 127, str(error))

    def _run(self, tool: str, *arguments: str) -> None:
        done = self._try([self._binaries / tool, "-D", self.data, *arguments])
        if done.returncode:
            log = self.folder / "log"
            tail = log.read_text()[-2_000:] if log.exists() else ""
            raise NoPostgres(f"{tool} failed: {done.stdout}{tail}")

    def start(self) -> None:
        """Start the server and wait until it answers. Raises NoPostgres."""
        self._run("pg_ctl", "-w", "-s", "-t", "60", "-l", str(self.folder / "log"), "start")
        self._guarded()

    def _guarded(self) -> None:
        """Make the server stop at once if this process ends without stopping it."""
        self.pid = int((self.data / "postmaster.pid").read_text().split()[0])
        self._guard = Guard(self.pid, "INT")

    def stop(self, mode: str = "fast") -> None:
        """Stop the server: `fast` is orderly, `immediate` is like a crash. Raises NoPostgres."""
        self._guard.close()
        self._run("pg_ctl", "-w", "-s", "-t", "60", "-m", mode, "stop")

    def restart(self, mode: str = "fast") -> None:
        """Stop and start again."""
        self._guard.close()
        self._run(
            *("pg_ctl", "-w", "-s", "-t", "60", "-m", mode),
            *("-l", str(self.folder / "log"), "restart"),
        )
        self._guarded()

    def promote(self) -> None:
        """Promote a standby; wait until it is the primary. Raises NoPostgres."""
        self._run("pg_ctl", "-w", "-s", "-t", "60", "promote")

    def url(self, database: str, *others: "Cluster") -> str:
        """Return the address of an unused database, with the schema of this release."""
        hosts = ",".join(str(one.folder) for one in (self, *others))
        return f"postgresql://moorage@/{database}?host={hosts}"

    def create(self, database: str, template: str = "template1") -> str:
        """Create a database; return its address."""
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{database}" TEMPLATE "{template}"'.encode())
        return self.url(database)

    def drop(self, database: str) -> None:
        """Remove a database, with all its connections."""
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f'DROP DATABASE IF EXISTS "{database}" WITH (FORCE)'.encode())

    def exists(self, database: str) -> bool:
        """Return whether there is such a database."""
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            found = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (database,))
            return found.fetchone() is not None

    def close(self) -> None:
        """Stop the server; remove its folder if it is a temporary one."""
        self._guard.close()
        if (self.data / "postmaster.pid").exists():
            self.stop("immediate" if self._temporary else "fast")
        if self._temporary:
            shutil.rmtree(self.folder)


@cache
def shared() -> Cluster:
    """Return the cluster of this test run; the first call starts it. Raises NoPostgres."""
    cluster = Cluster()
    atexit.register(cluster.close)
    migrate(cluster.create(MIGRATED))
    return cluster


def fresh() -> str:
    """Return the address of an unused database, with the schema of this release.

    It is named after the present test, because a connection that leaks is found during a later one.
    """
    test = re.match(r"[^\s\[]*::(test_\w+)", os.environ.get("PYTEST_CURRENT_TEST", ""))
    name = test[1].lower()[:46] if test else "test"
    return shared().create(f"{name}_{uuid4().hex[:16]}", MIGRATED)


def database_of(url: str) -> str:
    """Return the name of the database at an address of `fresh`."""
    return url.removeprefix("postgresql://moorage@/").split("?", 1)[0]


def ask(url: str, statement: str) -> list[tuple[Any, ...]]:
    """Run a statement in a database; return its rows."""
    with psycopg.connect(url) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


def main(folder: str, command: list[str]) -> int:
    """Run a command with a cluster in `folder`; return its exit code."""
    with Cluster() if folder == "-" else Cluster(Path(folder).resolve(), durable=True) as cluster:
        if not cluster.exists("moorage"):
            cluster.create("moorage")
        environment = {**os.environ, "MOORAGE_DATABASE": cluster.url("moorage")}
        prints_exports = folder != "-"
        process = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE if prints_exports else None, text=True
        )
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda sent, _: process.send_signal(sent))
        for line in process.stdout or ():
            sys.stdout.write(line)
            if served := SERVED.match(line):
                sys.stdout.writelines(_exports(served["url"], environment["MOORAGE_DATABASE"]))
            sys.stdout.flush()
        return process.wait()


def _exports(url: str, database: str) -> Iterator[str]:
    """Yield the commands that set up another terminal for a server and its ledger."""
    yield "To use it in another terminal, run there:\n"
    yield f"export MOORAGE_URL={shlex.quote(url)}\n"
    yield f"export MOORAGE_DATABASE={shlex.quote(database)}\n"
    token = Files(database).token
    if token.exists():  # it does not without tokens, or if another user has started first
        yield f'export MOORAGE_TOKEN="$(cat {shlex.quote(str(token))})"\n'


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1], sys.argv[2:]))
    except NoPostgres as error:
        sys.exit(f"run-postgres: {error}")
