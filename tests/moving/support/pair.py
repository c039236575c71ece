"""A filled original, and a server of Moorage that has imported it."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.support.server import Server, serve
from tests.moving.support import engines
from tests.moving.support.generator import Generated, fill
from tests.moving.support.original import PYTHON, SCRIPT, SETTINGS, Original
from tests.support import warm

SECONDS_MAX = 280.0
TOKEN = "admin"


@dataclass(frozen=True)
class Pair:
    """Both, with the same content."""

    original: Original
    server: Server
    made: Generated

    @property
    def environment(self) -> dict[str, str]:
        """What the command needs to find our server."""
        known = {k: v for k, v in os.environ.items() if not k.startswith("MOORAGE_")}
        return {**known, "MOORAGE_URL": self.server.url, "MOORAGE_TOKEN": TOKEN}

    def moorage(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the command at our server."""
        return warm.run(arguments, SECONDS_MAX, None, self.environment)

    def done(self, *arguments: str) -> str:
        """Run the command, which must succeed; return its output."""
        found = self.moorage(*arguments)
        assert found.returncode == 0, (found.stdout, found.stderr)
        return found.stdout


@contextmanager
def pair(providers: int, allocations: int, engine: str = "sqlite") -> Iterator[Pair]:
    """Yield an original with this many providers and allocations, imported."""
    with tempfile.TemporaryDirectory(prefix="moorage-pair-") as folder:
        place = Path(folder)
        with Original(engines.fresh(engine, place)) as original:
            made = fill(original.url, 1, providers, allocations, engines.clients(engine))
            with serve(place / "moorage.db", "--auth", "noauth2", "--no-access-log") as server:
                both = Pair(original, server, made)
                report = ("--report", str(place / "report"))
                both.done("import", "placement", "--database", original.database, *report)
                yield both


def synced(database: str, revision: str = "") -> str:
    """Make the schema in a database, as `placement-manage db sync` does; return its address.

    `revision`: of an older release, by the head of its migrations.
    """
    with tempfile.TemporaryDirectory() as folder:
        settings = SETTINGS.format(database=database.replace("%", "%%"), log=f"{folder}/log")
        (Path(folder) / "placement.conf").write_text(settings)
        made = subprocess.run(
            [PYTHON, SCRIPT, "sync", folder, *filter(None, [revision])],
            capture_output=True,
            text=True,
            check=False,
        )
        assert made.returncode == 0, made.stderr
    return database
