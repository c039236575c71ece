"""Placement's own fixtures fill a database of the original, and an import moves it to the server.

The classes, and all that they call, are those of the wheel. Only the database gets another address,
and `moorage import placement` follows when a fixture is complete.
"""

import inspect
import logging
import sqlite3
import subprocess
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import yaml
from oslo_config import fixture as config_fixture
from placement.db.sqlalchemy import migration
from placement.tests import fixtures
from placement.tests.functional.fixtures import gabbits

from tests.conformance.remote import Remote

IMPORT_SECONDS = 120
GRANULAR, SUBTREES = "granular.yaml", "granular-same-subtree.yaml"
LOSSES = {
    "an allocation": ("with-allocations.yaml", "DELETE FROM {}", "allocations"),
    "an inventory": (GRANULAR, "DELETE FROM {}", "inventories"),
    "a trait": (GRANULAR, "DELETE FROM {}", "resource_provider_traits"),
    "an aggregate": (GRANULAR, "DELETE FROM {}", "resource_provider_aggregates"),
    "a parent": (
        SUBTREES,
        "UPDATE {} SET parent_provider_id = NULL, root_provider_id = id",
        "resource_providers",
    ),
}
"""What an import may lose: a file that must fail then, and how a table loses its newest row."""


def fills(file: Path) -> bool:
    """Return whether a fixture of this file of the suite writes to its database."""
    names = yaml.safe_load(file.read_text()).get("fixtures") or []
    return any("tb." in inspect.getsource(getattr(gabbits, name)) for name in names)


class Originals:
    """Originals of one server, one after another."""

    def __init__(self, remote: Remote, moorage: str) -> None:
        """Prepare; `moorage` is the command that imports."""
        self.loss: str | None = None
        """What the next one loses before it is imported, a name of `LOSSES`."""
        self._remote = remote
        self._moorage = moorage
        self._folder = tempfile.TemporaryDirectory(prefix="moorage-original-")
        self._count = 0

    @property
    def _file(self) -> Path:
        return Path(self._folder.name) / f"{self._count}.sqlite"

    def database(self, settings: config_fixture.Config, *, set_config: bool) -> fixtures.Database:
        """Stand for the class of the database fixture: the next one is another file."""
        self._count += 1
        settings.config(connection=f"sqlite:///{self._file}", group="placement_database")
        return fixtures.Database(settings, set_config=set_config)

    def move(self) -> None:
        """Import what is there into the server, which is emptied before.

        Raises:
            RuntimeError: the command failed.
        """
        migration.stamp("head")  # the fixtures make tables without saying of which release
        if self.loss is not None:
            self._lose(*LOSSES[self.loss][1:])
        self._remote.reset("default", None)
        source = ["--database", f"sqlite:///{self._file}"]
        target = ["--server", str(self._remote.http.base_url), "--token", "admin"]
        report = ["--report", str(self._file.with_suffix(""))]
        done = subprocess.run(
            [self._moorage, "import", "placement", *source, *target, *report],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=IMPORT_SECONDS,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"the import failed: {done.stdout}{done.stderr}")

    def _lose(self, change: str, table: str) -> None:
        newest = f"rowid = (SELECT max(rowid) FROM {table})"
        connection = sqlite3.connect(self._file)
        with connection:
            assert connection.execute(f"{change.format(table)} WHERE {newest}").rowcount == 1
        connection.close()


def imported_fixtures(originals: Originals) -> Any:
    """Return the fixture classes of the wheel; each ends with an import."""
    gabbits.fixtures = SimpleNamespace(Database=originals.database)
    logging.disable(logging.WARNING)  # the original tells all that it does

    def followed_by_an_import(fixture: type[Any]) -> type[Any]:
        class Imported(fixture):  # type: ignore[misc]  # Placement has no types
            """A fixture that is imported when it is complete."""

            def start_fixture(self) -> None:
                super().start_fixture()
                originals.move()

        return Imported

    classes = inspect.getmembers(gabbits, inspect.isclass)
    return SimpleNamespace(
        **{
            name: followed_by_an_import(found)
            for name, found in classes
            if issubclass(found, gabbits.APIFixture)
        }
    )
