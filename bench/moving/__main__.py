"""Measures a move from OpenStack Placement on MariaDB, and back.

    python -m bench.moving [--providers 15000] [--consumers 100000] [--quick] [--postgres]

Each consumer has two allocations. It copies while the original is in use, follows, stops the
writers, finishes, and exports into a fresh database. It prints a line for each step, and fails if a
goal is missed. `--postgres`: Moorage's own database is PostgreSQL instead of a file. `others used`
is the share of the processors that other programs had.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import sqlalchemy as sa
from sqlalchemy import URL

from bench import machine
from bench.moving.filling import change, fill
from bench.reporters.targets import Others, Targets
from bench.target import Moorage, Storage
from moorage.integrations.placement.addresses import address_of
from tests.moving.support import engines
from tests.moving.support.pair import synced
from tests.support.cluster import Cluster

IN_SECONDS, STANDSTILL_SECONDS, OUT_SECONDS = 120.0, 10.0, 300.0
CHANGED_BEFORE, CHANGED_LAST = 50, 500
"""Every so manyth consumer changes before it follows, and before the writers stop."""


@dataclass(frozen=True)
class Step:
    """One command: what it printed, and how long it took."""

    said: dict[str, Any]
    seconds: float
    spent: float
    """Processor seconds of the command, of Moorage and of MariaDB."""
    busy: str

    def __str__(self) -> str:
        return f"{self.seconds:.1f} s ({self.spent:.1f} s of a processor), {self.busy}"


class Commands:
    """Runs `moorage` at one server."""

    def __init__(self, url: str, folder: Path) -> None:
        self._words = ["--server", url, "--token", "admin", "--json"]
        self._folder = folder

    def run(self, *arguments: str) -> Step:
        """Run a command, which must succeed."""
        command = [sys.executable, "-m", "moorage", *arguments, *self._words]
        began, before = perf_counter(), machine.processor_seconds([os.getpid()])
        others = Others([])
        done = subprocess.run(
            command, capture_output=True, text=True, cwd=self._folder, check=False
        )
        seconds = perf_counter() - began
        spent = machine.processor_seconds([os.getpid()]) - before
        if done.returncode:
            raise SystemExit(f"{' '.join(arguments[:2])}: {done.stderr}")
        return Step(json.loads(done.stdout), seconds, spent, str(others))


def measure(asked: argparse.Namespace) -> bool:
    """Move in and out; return whether all goals are met."""
    targets = Targets()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        stack.callback(engines.mariadb().close)
        cluster = stack.enter_context(Cluster()) if asked.postgres else None
        if cluster is not None:
            cluster.create("moorage")
        source = address_of(synced(engines.fresh("mariadb", folder)))
        began = perf_counter()
        fill(source, asked.providers, asked.consumers)
        print(f"filled the original in {perf_counter() - began:.1f} s")
        storage = Storage(folder, "moorage", cluster)
        server = stack.enter_context(Moorage(storage))
        commands = Commands(server.urls[0], folder)
        _move_in(commands, source, targets)
        database = synced(engines.fresh("mariadb", folder))
        out = commands.run("export", "placement", "--database", database)
        print(f"out: {out}")
        _check(targets, "out", out.seconds, OUT_SECONDS)
        same = commands.run("verify", "placement", "--database", database)
        print(f"compared every row: {same}")
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"most memory of one process: {most:.0f} MiB")
    return not targets.missed


def _move_in(commands: Commands, source: URL, targets: Targets) -> None:
    moved = ("import", "placement", "--database", source.render_as_string(hide_password=False))
    engine = sa.create_engine(source, poolclass=sa.pool.NullPool)
    copied = commands.run(*moved, "--copy")
    print(f"copied {copied.said['rows']}: {copied}")
    with engine.connect() as connection:
        count = change(connection, 1, CHANGED_BEFORE)
    followed = commands.run(*moved, "--follow")
    print(f"followed {count} changed consumers: {followed}")
    with engine.connect() as connection:
        last = change(connection, 2, CHANGED_LAST)
    finished = commands.run(*moved, "--finish")
    print(f"finished, {last} consumers had changed: {finished}")
    _check(targets, "in", copied.seconds, IN_SECONDS)
    _check(targets, "standstill", finished.seconds, STANDSTILL_SECONDS)


def _check(targets: Targets, what: str, seconds: float, most: float) -> None:
    targets.check(f"{what}: {seconds:.1f} s", seconds <= most, f"at most {most:.0f} s")


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m bench.moving", description=__doc__)
    parser.add_argument("--providers", type=int, default=15_000)
    parser.add_argument("--consumers", type=int, default=100_000)
    parser.add_argument("--quick", action="store_true", help="a tenth of it")
    parser.add_argument("--postgres", action="store_true")
    asked = parser.parse_args()
    if asked.quick:
        asked.providers //= 10
        asked.consumers //= 10
    sys.exit(not measure(asked))


if __name__ == "__main__":
    main()
