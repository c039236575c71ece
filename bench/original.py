"""The original: openstack-placement under uwsgi, in an environment of its own.

It is configured as its own installation guide does, with `noauth2` in place of Keystone. What of a
fleet it cannot load over HTTP in reasonable time is written into its tables.
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
"""The generation of a host that was given inventories, traits and aggregates over HTTP."""


class Original(Target):
    """OpenStack Placement with two uwsgi workers.

    Args:
        storage: where its database is.
        environment: the virtual environment that it is installed in.
        candidates_max: its setting `max_allocation_candidates`; -1 is its default, no bound.
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
        """SQLAlchemy's name for the database."""
        storage = self.storage
        if storage.cluster is None:
            return f"sqlite:///{storage.file}"
        return f"postgresql+psycopg2://moorage@/{storage.name}?host={storage.cluster.folder}"

    def start(self) -> None:
        """Make the schema, start the workers, wait for an answer. Raises NotStarted."""
        storage = self.storage
        settings = storage.directory / "placement.conf"
        settings.write_text(
            "[api]\nauth_strategy = noauth2\n"
            f"[placement_database]\nconnection = {self.address}\n"
            f"[placement]\nmax_allocation_candidates = {self.candidates_max}\n"
        )
        log = storage.directory / f"{storage.name}.log"
        with log.open("wb") as said:
            # The first start enters the standard names; two workers at once would fail on SQLite.
            failed = any(self._run(command, said).wait() for command in _prepare(str(settings)))
            if not failed:
                port = _free_port()
                self.processes.append(self._run(_uwsgi(self.environment, port), said))
                self.urls.append(f"http://127.0.0.1:{port}")
        if failed or not _loaded(log, self.processes[0]):
            self.stop()
            raise NotStarted(f"{self.name} does not start: {log.read_text()[-2_000:]}")

    def _run(self, command: Sequence[str], said: Any) -> subprocess.Popen[bytes]:
        program = self.environment.resolve() / "bin" / command[0]
        settings = {"OS_PLACEMENT_CONFIG_DIR": str(self.storage.directory)}
        return subprocess.Popen(
            [str(program), *command[1:]],
            stdout=said,
            stderr=said,
            cwd=self.storage.directory,
            env={**os.environ, **settings},
        )

    def fill(self, fleet: Fleet) -> int:
        """Write the hosts into its tables that it has not been given; return how many."""
        with contextlib.closing(self._connect()) as connection:
            count = _filled(connection, fleet)
            connection.commit()
        return count

    def _connect(self) -> "Connection":
        cluster = self.storage.cluster
        if cluster is None:
            return sqlite3.connect(self.storage.file)
        return psycopg.connect(cluster.url(self.storage.name))


class Connection(Protocol):
    """What both database modules offer."""

    def cursor(self) -> Any:
        """Return what statements are run on."""
        ...

    def commit(self) -> None:
        """End the transaction."""
        ...

    def close(self) -> None:
        """Disconnect."""
        ...


def missing(environment: Path) -> str | None:
    """Return what is missing for measuring the original; None if nothing is."""
    for program in ("uwsgi", "placement-manage"):
        if not (environment / "bin" / program).exists():
            return (
                f"{environment} has no {program}: `make bench` installs it there from "
                "bench/requirements.lock; uwsgi is compiled, so that takes a C compiler and "
                "Python's headers"
            )
    return None


def _uwsgi(environment: Path, port: int) -> list[str]:
    return [
        *("uwsgi", "--http-socket", f"127.0.0.1:{port}", "--listen", "128", "--master"),
        *("--processes", str(WORKERS), "--lazy-apps", "--enable-threads", "--die-on-term"),
        *("--disable-logging", "--need-app", "--buffer-size", "65535"),
        *("--virtualenv", str(environment.resolve()), "--module", "placement.wsgi.api:application"),
    ]


def _prepare(settings: str) -> list[list[str]]:
    """What is run once on an empty database: the schema, then the standard names."""
    return [
        ["placement-manage", "--config-file", settings, "db", "sync"],
        ["python", "-c", "import placement.wsgi; placement.wsgi.init_application()"],
    ]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _loaded(log: Path, process: subprocess.Popen[bytes]) -> bool:
    """Wait until every worker has loaded the application; False if one cannot."""
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline:
        if log.read_bytes().count(WORKER_READY) == WORKERS:
            return True
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(PAUSE_SECONDS)
            return False
    return False


def _filled(connection: Connection, fleet: Fleet) -> int:
    """Add what a host lacks: after a failed request it may be there in part."""
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
    _equipped(cursor, providers, numbers)
    if isinstance(connection, psycopg.Connection):
        table = "resource_providers"
        cursor.execute(f"SELECT setval('{table}_id_seq', (SELECT max(id) FROM {table}))")
        cursor.execute("ANALYZE")
    return sum(host[0].uuid not in known for host in hosts)


def _equipped(cursor: Any, providers: list[Provider], numbers: dict[str, int]) -> None:
    """Give the providers what they lack of inventories, traits and aggregates."""
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
    """Insert the rows whose provider and `column`, the first two, are not in the table."""
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
