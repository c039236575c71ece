"""Whatever changes in the original, the ledger of a real server becomes the same, row by row."""

import random
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from moorage.client.transport import RefusedError, Transport
from moorage.integrations.placement import difference as chunked
from moorage.integrations.placement.difference import difference
from moorage.integrations.placement.importing import (
    ChangingError,
    Import,
    ImportingError,
    OddError,
)
from moorage.integrations.placement.ledger import Ledger
from moorage.integrations.placement.oddities import Oddities
from moorage.integrations.placement.reading import DatabaseSource, Progress, Reading, silent
from moorage.integrations.placement.rows import RowKind
from moorage.wire.imports import RowsWanted
from tests.e2e.support.server import Server, serve
from tests.integrations.placement.original_file import CONSUMER, made, read, source_of
from tests.support.seeds import seeds

CLASSES = ("VCPU", "MEMORY_MB", "CUSTOM_GOLD", "CUSTOM_B", "CUSTOM_C")
TRAITS = ("HW_CPU_X86_AVX2", "CUSTOM_FAST", "CUSTOM_SLOW")
NAMES = ("a", "b", "c", "größe", "计算", "f", "g")
TIMES = "2024-01-01 00:00:00"
STEPS = 8


class Model:
    """A sound original that changes at random; `write` puts all of it into a file."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.parents: dict[int, int | None] = {}
        self.names: dict[int, str] = {}
        self.inventories: dict[tuple[int, str], int] = {}
        self.tags: dict[int, set[str]] = {}
        self.allocations: dict[tuple[int, int, str], int] = {}
        self.generations: dict[int, int] = {}

    def change(self) -> None:
        """Make several changes, such as a swap of names, or a child that becomes the parent."""
        for _ in range(self.random.randrange(1, 6)):
            self.random.choice(
                [self._add, self._add, self._remove, self._swap, self._turn, self._offer]
                + [self._allocate] * 3
            )()

    def _any(self) -> int | None:
        return self.random.choice(sorted(self.parents)) if self.parents else None

    def _add(self) -> None:
        free = [name for name in NAMES if name not in self.names.values()]
        if free:
            key = self.random.randrange(1, 40)
            if key not in self.parents:
                self.parents[key] = self.random.choice([None, self._any()])
                self.names[key] = self.random.choice(free)
                self.generations[key] = self.random.randrange(9)
                self.tags[key] = {self.random.choice(TRAITS)}
                self._offer()

    def _remove(self) -> None:
        key = self._any()
        if key is not None:
            for child in [one for one, parent in self.parents.items() if parent == key]:
                self.parents[child] = self.parents[key]
            del self.parents[key], self.names[key], self.generations[key], self.tags[key]
            for place in [place for place in self.inventories if place[0] == key]:
                self._withdraw(place)

    def _withdraw(self, place: tuple[int, str]) -> None:
        del self.inventories[place]
        for one in [one for one in self.allocations if one[1:] == place]:
            del self.allocations[one]

    def _swap(self) -> None:
        one, other = self._any(), self._any()
        if one is not None and other is not None:
            self.names[one], self.names[other] = self.names[other], self.names[one]

    def _turn(self) -> None:
        """Make a child the parent of its parent."""
        key = self._any()
        parent = None if key is None else self.parents[key]
        if key is not None and parent is not None:
            self.parents[key], self.parents[parent] = self.parents[parent], key

    def _offer(self) -> None:
        key = self._any()
        if key is not None:
            place = key, self.random.choice(CLASSES)
            if place in self.inventories and self.random.random() < 0.5:
                self._withdraw(place)
            else:
                self.inventories[place] = self.random.randrange(0, 9)

    def _allocate(self) -> None:
        if self.inventories:
            consumer = self.random.randrange(1, 9)
            place = self.random.choice(sorted(self.inventories))
            if self.random.random() < 0.3:  # it moves
                for one in [one for one in self.allocations if one[0] == consumer]:
                    del self.allocations[one]
            self.allocations[consumer, *place] = self.random.randrange(1, 20)

    def write(self, file: Path) -> None:
        """Replace all rows of a file."""
        connection = sqlite3.connect(file)
        with connection:
            for table in (
                *("allocations", "consumers", "inventories", "resource_provider_traits"),
                *("resource_provider_aggregates", "resource_providers", "resource_classes"),
                "traits",
            ):
                connection.execute(f"DELETE FROM {table}")
            classes = self._names(connection, "resource_classes", CLASSES, self.inventories)
            traits = self._names(connection, "traits", TRAITS, self.tags)
            for key, parent in self.parents.items():
                shown = (uuid(key), self.names[key], self.generations[key], self._root(key))
                _insert(connection, "resource_providers", key, *shown, parent)
                for name in self.tags[key]:
                    _insert(connection, "resource_provider_traits", traits[name], key)
            for number, ((key, name), total) in enumerate(self.inventories.items()):
                numbers = (total, 0, 1, 9, 1, 1.5)
                _insert(connection, "inventories", number, key, classes[name], *numbers)
            for consumer in {one[0] for one in self.allocations}:
                _insert(connection, "consumers", consumer, uuid(consumer + 100), 1, 1, 3, 1)
            for number, ((consumer, key, name), used) in enumerate(self.allocations.items()):
                held = (uuid(consumer + 100), classes[name], used)
                _insert(connection, "allocations", number, key, *held)
        connection.close()

    def _names(
        self, connection: sqlite3.Connection, table: str, names: tuple[str, ...], used: Any
    ) -> dict[str, int]:
        """Write the names; custom ones only if something uses them, or by chance."""
        those = {name: key for key, name in enumerate(names, 1)}
        for name, key in those.items():
            if name.startswith("CUSTOM") and self.random.random() < 0.5 and not _uses(used, name):
                continue
            _insert(connection, table, key, name)
        return those

    def _root(self, key: int) -> int:
        while (parent := self.parents[key]) is not None:
            key = parent
        return key


def _uses(used: dict[Any, Any], name: str) -> bool:
    return any(
        name in (key[1:] if isinstance(key, tuple) else value) for key, value in used.items()
    )


COLUMNS = {
    "resource_classes": "id, name, created_at",
    "traits": "id, name, created_at",
    "resource_providers": "id, uuid, name, generation, root_provider_id, parent_provider_id,"
    " created_at",
    "resource_provider_traits": "trait_id, resource_provider_id, created_at",
    "inventories": "id, resource_provider_id, resource_class_id, total, reserved, min_unit,"
    " max_unit, step_size, allocation_ratio, created_at",
    "consumers": "id, uuid, project_id, user_id, generation, consumer_type_id, created_at",
    "allocations": "id, resource_provider_id, consumer_id, resource_class_id, used, created_at",
}


def _insert(connection: sqlite3.Connection, table: str, *values: Any) -> None:
    marks = ", ".join("?" * (len(values) + 1))
    statement = f"INSERT INTO {table} ({COLUMNS[table]}) VALUES ({marks})"
    connection.execute(statement, (*values, TIMES))


def uuid(key: int) -> str:
    """Return a UUID for a number."""
    return f"00000000-0000-4000-8000-{key:012x}"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """An empty ledger."""
    file = tmp_path_factory.mktemp("following") / "m.sqlite"
    with serve(file, "--auth", "noauth2") as running:
        yield running


@pytest.fixture
def ledger(server: Server) -> Iterator[Ledger]:
    """The ledger, empty again."""
    found = Ledger(Transport(server.url, "admin"))
    yield found
    try:
        found.abort()
    except RefusedError as refusal:
        assert refusal.code == "import_not_found"


def importing(source: DatabaseSource, ledger: Ledger, progress: Progress = silent) -> Import:
    """Return an import without choices."""
    return Import(source, ledger, Oddities, progress, lambda reading: None)


def differs(reading: Reading, ledger: Ledger) -> str:
    """Return a difference, or `none`."""
    return difference(reading.rows, ledger.rows).example()


@seeds(16, 4)
def test_it_follows_every_change(
    tmp_path: Path, ledger: Ledger, seeds: Sequence[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also with one row in each request, where the order of requests matters most."""
    file = made(tmp_path)
    for seed in seeds:
        monkeypatch.setattr(chunked, "CHUNK_ROWS", 1 + seed % 3)
        follows(file, ledger, Model(seed))
        ledger.abort()


def follows(file: Path, ledger: Ledger, model: Model) -> None:
    """Change an original again and again, and follow it."""
    model.write(file)
    work = importing(source_of(file), ledger)
    work.copy()
    for _ in range(STEPS):
        model.change()
        model.write(file)
        reading = read(file)
        before = difference(reading.rows, ledger.rows).size
        assert work.follow().sent == before
        assert differs(reading, ledger) == "none"


def test_a_refused_request_changes_nothing_and_is_resumed(tmp_path: Path, ledger: Ledger) -> None:
    """The import of the same original goes on; that of another one must wait."""
    file = made(tmp_path)
    importing(source_of(file), ledger).copy()
    (tmp_path / "other").mkdir()
    other = importing(source_of(made(tmp_path / "other")), ledger)
    for step in (other.copy, other.follow, other.finish):
        with pytest.raises(ImportingError, match="finish or abort"):
            step()
    assert importing(source_of(file), ledger).copy().sent == 0


def test_odd_data_is_refused_before_anything_is_begun(tmp_path: Path, ledger: Ledger) -> None:
    """So the ledger stays open."""
    source = source_of(made(tmp_path, "DELETE FROM consumers"))
    with pytest.raises(OddError, match=r"consumer_missing \(1\)"):
        importing(source, ledger).copy()
    with pytest.raises(RefusedError) as refused:
        ledger.under_way()
    assert refused.value.code == "import_not_found"


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE resource_providers SET generation = generation + 1 WHERE id = 2",
        "DELETE FROM allocations",
        "UPDATE traits SET name = 'CUSTOM_OTHER' WHERE id = 2",
    ],
)
def test_an_original_that_changes_is_not_finished(
    tmp_path: Path, ledger: Ledger, change: str
) -> None:
    """The change happens between the two readings."""
    file = made(tmp_path)

    class Changing(DatabaseSource):
        def is_unchanged(self, reading: Reading) -> bool:
            connection = sqlite3.connect(file)
            with connection:
                connection.execute(change)
                connection.execute(
                    "DELETE FROM consumers WHERE uuid NOT IN (SELECT consumer_id FROM allocations)"
                )
            connection.close()
            return super().is_unchanged(reading)

    importing(source_of(file), ledger).copy()
    source = Changing(source_of(file)._database)
    with pytest.raises(ChangingError, match="still changes"):
        importing(source, ledger).finish()
    assert ledger.under_way().source == source_of(file).shown
    assert importing(source, ledger).follow().sent


def test_an_original_that_stands_still_is_finished(tmp_path: Path, ledger: Ledger) -> None:
    """The control; rows that differ at the end are looked up once more."""
    file = made(tmp_path)
    importing(source_of(file), ledger).copy()
    file = made(tmp_path, "DELETE FROM allocations", "DELETE FROM consumers")
    source = source_of(file)
    assert source.is_unchanged(read(file))
    seen = []

    class Watched(Ledger):
        def finish(self, writer: str | None = None) -> None:
            seen.append("finish")

        def row(self, kind: RowKind, key: str) -> bytes | None:
            seen.append(key)
            return super().row(kind, key)

    watched = Watched(ledger._transport)
    assert importing(source, watched).finish().sent == 1
    assert seen == [CONSUMER, "finish"]


def test_a_row_that_is_not_as_it_was_written_is_noticed(tmp_path: Path, ledger: Ledger) -> None:
    """Then the ledger stays closed."""
    file = made(tmp_path)
    importing(source_of(file), ledger).copy()
    made(tmp_path, "DELETE FROM allocations", "DELETE FROM consumers")

    class Forgetful(Ledger):
        def write(self, rows: RowsWanted) -> None:
            """Lose it."""

    with pytest.raises(ImportingError, match=f"not as it was written: consumers {CONSUMER}"):
        importing(source_of(file), Forgetful(ledger._transport)).finish()
    assert ledger.under_way().source == source_of(file).shown


def test_a_step_without_an_import_says_so(tmp_path: Path, ledger: Ledger) -> None:
    """Nothing is read of what was never begun."""
    work = importing(source_of(made(tmp_path)), ledger)
    for step in (work.follow, work.finish):
        with pytest.raises(ImportingError, match="begin it with --copy"):
            step()
