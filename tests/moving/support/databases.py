"""Fresh databases for an original, on one engine."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from tests.moving.support.mariadb import MariaDb
from tests.support.cluster import Cluster

ROOT = Path(__file__).resolve().parents[3]
MARIADB = Path(os.environ.get("MARIADB", ROOT / ".mariadb"))
"""The folder that `scripts/mariadb` has made."""

ENGINES = ("sqlite", "mariadb", "postgresql")


class Databases:
    """Makes databases; each call of `fresh` returns the address of another one."""

    def __init__(self, folder: Path, mariadb: MariaDb | None, cluster: Cluster | None) -> None:
        self._folder = folder
        self._mariadb = mariadb
        self._cluster = cluster
        self._numbers = count(1)

    def fresh(self) -> str:
        """Return the address of a new, empty database."""
        name = f"placement{next(self._numbers)}"
        if self._mariadb is not None:
            return self._mariadb.create(name)
        if self._cluster is not None:
            return self._cluster.create(name).replace("postgresql://", "postgresql+psycopg://")
        return f"sqlite:///{self._folder / name}.db"


@contextmanager
def databases(engine: str) -> Iterator[Databases]:
    """Yield databases of one engine, whose server runs meanwhile."""
    with tempfile.TemporaryDirectory(prefix="moorage-moving-") as folder:
        if engine == "mariadb":
            with MariaDb(MARIADB) as mariadb:
                yield Databases(Path(folder), mariadb, None)
        elif engine == "postgresql":
            with Cluster() as cluster:
                yield Databases(Path(folder), None, cluster)
        else:
            yield Databases(Path(folder), None, None)
