"""Where an original keeps its ledger: MariaDB, PostgreSQL or an SQLite file."""

import os
from functools import cache
from pathlib import Path
from uuid import uuid4

from tests.moving.support.mariadb import MariaDb
from tests.moving.support.original import ROOT
from tests.support import cluster

MARIADB = Path(os.environ.get("MARIADB", ROOT / ".mariadb"))
"""The folder that `scripts/mariadb` has made."""

ENGINES = ("mariadb", "postgresql", "sqlite")


@cache
def mariadb() -> MariaDb:
    """Return the MariaDB of this test run; the first call starts it."""
    return MariaDb(MARIADB)


def fresh(engine: str, folder: Path) -> str:
    """Return the address of an empty database; it is the same for the original and for us."""
    name = f"placement_{uuid4().hex[:12]}"
    if engine == "mariadb":
        return mariadb().create(name)
    if engine == "postgresql":
        return cluster.shared().create(name).replace("postgresql:", "postgresql+psycopg2:", 1)
    return f"sqlite:///{folder / name}.sqlite"


def clients(engine: str) -> int:
    """Return how many clients may write to an original at the same time."""
    return 1 if engine == "sqlite" else 4
