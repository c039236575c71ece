"""The original: openstack-placement under uwsgi, in a separate virtual environment.

It is configured as in its installation guide, with `noauth2` instead of Keystone. The part of a
fleet that it cannot load over HTTP in reasonable time is written to its tables.
"""

import contextlib
import itertools
import os
import socket
import sqlite3
import subprocess
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

import psycopg

from bench.fleet import Fleet, Provider
from bench.target import READY_SECONDS, NotStarted, Storage, Target

WORKERS = 2
VERSION = "16.0.0"
PAUSE_SECONDS = 0.1
WORKER_READY = b"WSGI app 0 (mountpoint='') ready"
FILLED_GENERATION = 3
"""The generation of a host after inventories, traits and aggregates were set over HTTP."""


class Original(Target):
    """OpenStack Placement with two uwsgi workers.

    Args:
        storage: where its database is.
        environment: the virtual environment in which it is installed.
        candidates_max: its setting `max_allocation_candidates`; -1, its default, means no limit.
    """

    peer = True
    keeps = False

    def __init__(self, storage: Storage, environment: Path, candidates_max: int = -1) -> None:
        super().__init__(storage)
        self.environment = environment
        self.candidates_max = candidates_max
        self.name = f"original, {storage.engine}"

    @property
    def address(self) -> str:
        """The address of the database for SQLAlchemy."""
        storage = self.storage
        if storage.cluster is None:
            return f"sqlite:///{storage.file}"
        return f"postgresql+psycopg2://moorage@/{storage.name}?host={storage.cluster.folder}"

    def start(self) -> None:
        """Create the schema, start the workers and wait until they are ready. Raises NotStarted."""
        storage = self.storage
        settings = storage.directory / "placement.conf"
        settings.write_text(
            "[api]\nauth_strategy = noauth2\n"
            f"[placement_database]\nconnection = {self.address}\n"
            f"[placement]\nmax_allocation_candidates = {self.candidates_max}\n"
        )
        log = storage.directory / f"{storage.name}.log"
        with log.open("wb") as log_file:
            # The first start inserts the standard names; two workers at once would fail on SQLite.
            failed = any(self._run(command, log_file).wait() for command in _prepare(str(settings)))
            if not failed:
                port = _free_port()
                self.processes.append(self._run(_uwsgi(self.environment, port), log_file))
                self.urls.append(f"http://127.0.0.1:{port}")
        if failed or not _wait_until_ready(log, self.processes[0]):
            self.stop()
            raise NotStarted(f"{self.name} does not start: {log.read_text()[-2_000:]}")

    def _run(self, command: Sequence[str], log_file: Any) -> subprocess.Popen[bytes]:
        program = self.environment.resolve() / "bin" / command[0]
        settings = {"OS_PLACEMENT_CONFIG_DIR": str(self.storage.directory)}
        return subprocess.Popen(
            [str(program), *command[1:]],
            stdout=log_file,
            stderr=log_file,
            cwd=self.storage.directory,
            env={**os.environ, **settings},
        )

    def fill(self, fleet: Fleet) -> int:
        """Write the missing hosts to its tables; return how many were missing."""
        with contextlib.closing(self._connect()) as connection:
            count = _fill(connection, fleet)
            connection.commit()
        return count

    def _connect(self) -> "Connection":
        cluster = self.storage.cluster
        if cluster is None:
            return sqlite3.connect(self.storage.file)
        return psycopg.connect(cluster.url(self.storage.name))


class Connection(Protocol):
    """The connection methods that both database modules have."""

    def cursor(self) -> Any:
        """Return a cursor."""
        ...

    def commit(self) -> None:
        """Commit the transaction."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


def missing(environment: Path) -> str | None:
    """Return what is missing to measure the original, or None."""
    for program in ("uwsgi", "placement-manage"):
        if not (environment / "bin" / program).exists():
            return (
                f"{environment} has no {program}: `make bench` installs it there from "
                "bench/requirements.lock; uwsgi is compiled, which needs a C compiler and "
                "Python's headers"
            )
    return None


def _uwsgi(environment: Path, port: int) -> list[str]:
    return [
        *("uwsgi", "--http-socket", f"127.0.0.1:{port}", "--listen", "128", "--master"),
        *("--processes", str(WORKERS), "--lazy-apps", "--enable-threads", "--die-on-term"),
        *("--disable-logging", "--need-app", "--buffer-size", "65535"),
        # It closes after each answer; as in DevStack, it says so: clients would send into the end.
        *("--add-header", "Connection: close"),
        *("--virtualenv", str(environment.resolve()), "--module", "placement.wsgi.api:application"),
    ]


def _prepare(settings: str) -> list[list[str]]:
    """Return the commands for an empty database: create the schema, insert the standard names."""
    return [
        ["placement-manage", "--config-file", settings, "db", "sync"],
        ["python", "-c", "import placement.wsgi; placement.wsgi.init_application()"],
    ]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_until_ready(log: Path, process: subprocess.Popen[bytes]) -> bool:
    """Wait until every worker has loaded the application; return False if one fails."""
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline:
        if log.read_bytes().count(WORKER_READY) == WORKERS:
            return True
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(PAUSE_SECONDS)
            return False
    return False


def _fill(connection: Connection, fleet: Fleet) -> int:
    """Insert what is missing of each host; a failed request may have left a host incomplete."""
    cursor = connection.cursor()
    numbers = _numbers(cursor, "resource_providers", "uuid")
    known = set(numbers)
    hosts = list(fleet.hosts())
    providers = [provider for host in hosts for provider in host]
    following = itertools.count(1 + max(numbers.values(), default=0))
    for provider in providers:
        if provider.uuid not in known:
            numbers[provider.uuid] = next(following)
    _insert(
        cursor,
        "resource_providers(id, uuid, name, generation, root_provider_id, parent_provider_id)",
        (
            (
                *(numbers[provider.uuid], provider.uuid, provider.name, FILLED_GENERATION),
                numbers[host[0].uuid],
                None if provider.parent is None else numbers[provider.parent],
            )
            for host in hosts
            for provider in host
            if provider.uuid not in known
        ),
    )
    _fill_details(cursor, providers, numbers)
    if isinstance(connection, psycopg.Connection):
        table = "resource_providers"
        cursor.execute(f"SELECT setval('{table}_id_seq', (SELECT max(id) FROM {table}))")
        cursor.execute("ANALYZE")
    return sum(host[0].uuid not in known for host in hosts)


def _fill_details(cursor: Any, providers: list[Provider], numbers: dict[str, int]) -> None:
    """Insert the missing inventories, traits and aggregates of the providers."""
    classes = _numbers(cursor, "resource_classes", "name")
    traits = _numbers(cursor, "traits", "name")
    known = _numbers(cursor, "placement_aggregates", "uuid")
    wanted = {name for provider in providers for name in provider.aggregates}
    _insert(cursor, "placement_aggregates(uuid)", ((name,) for name in sorted(wanted - set(known))))
    aggregates = _numbers(cursor, "placement_aggregates", "uuid")
    columns = "total, reserved, min_unit, max_unit, step_size, allocation_ratio"
    _insert_missing(
        cursor,
        *("inventories", "resource_class_id", f", {columns}"),
        (
            (
                *(numbers[provider.uuid], classes[name], stock["total"], stock.get("reserved", 0)),
                *(1, 2_147_483_647, 1, stock.get("allocation_ratio", 1.0)),
            )
            for provider in providers
            for name, stock in provider.inventories.items()
        ),
    )
    _insert_missing(
        cursor,
        *("resource_provider_traits", "trait_id", ""),
        ((numbers[one.uuid], traits[name]) for one in providers for name in one.traits),
    )
    _insert_missing(
        cursor,
        *("resource_provider_aggregates", "aggregate_id", ""),
        ((numbers[one.uuid], aggregates[name]) for one in providers for name in one.aggregates),
    )


def _insert_missing(
    cursor: Any, table: str, column: str, more: str, rows: Iterable[tuple[Any, ...]]
) -> None:
    """Insert the rows whose first two values, provider and `column`, are not in the table."""
    cursor.execute(f"SELECT resource_provider_id, {column} FROM {table}")
    known = set(cursor.fetchall())
    missing = (row for row in rows if row[:2] not in known)
    _insert(cursor, f"{table}(resource_provider_id, {column}{more})", missing)


def _numbers(cursor: Any, table: str, column: str) -> dict[str, int]:
    cursor.execute(f"SELECT {column}, id FROM {table}")
    return dict(cursor.fetchall())


def _insert(cursor: Any, into: str, rows: Iterable[tuple[Any, ...]]) -> None:
    places = ", ".join(
        ["?" if isinstance(cursor, sqlite3.Cursor) else "%s"] * (into.count(",") + 1)
    )
    cursor.executemany(f"INSERT INTO {into} VALUES ({places})", list(rows))
