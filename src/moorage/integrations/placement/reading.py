"""Reads all of the original from its database, at one moment."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

from moorage.integrations.placement.database import Database, Snapshot
from moorage.integrations.placement.names import CLASSES, TRAITS, Names
from moorage.integrations.placement.oddities import Oddities
from moorage.integrations.placement.rows import Rows
from moorage.integrations.placement.tables.consumers import Consumers, Owners
from moorage.integrations.placement.tables.providers import Providers

Progress = Callable[[str, int, int], None]
"""Gets what is done now, how much of it is done, and how much there is; 0: that is unknown."""

STEP = 1_000
"""Rows after which progress is shown."""


def silent(what: str, done: int, total: int) -> None:
    """Tell nobody."""


@dataclass(frozen=True)
class Reading:
    """What the original has, and what of it is odd."""

    rows: Rows
    oddities: Oddities
    schema: str
    mark: str | None = None
    """Tells what was read from every other state, see `Snapshot.mark`; None: unknown."""


class Source(Protocol):
    """An original that can be read: its database, or its API."""

    shown: str
    """Its address for people."""

    def read(self, oddities: Oddities, progress: Progress) -> Reading:
        """Read everything. Raises SourceError."""
        ...

    def is_unchanged(self, reading: Reading) -> bool:
        """Return whether the original is surely the same as in a reading. Raises SourceError."""
        ...

    def warnings(self) -> list[str]:
        """Return what people should know before it is read. Raises SourceError."""
        ...

    def behind(self) -> str | None:
        """Return why it may lack what was written last; None: it does not. Raises SourceError."""
        ...

    def close(self) -> None:
        """Close its connections."""
        ...


class DatabaseSource:
    """The original by its database; a `Source`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.shown = database.shown

    def read(self, oddities: Oddities, progress: Progress) -> Reading:
        """See `Source`."""
        with self._database.snapshot() as snapshot:
            mark = snapshot.mark()
            return replace(read_snapshot(snapshot, oddities, progress), mark=mark)

    def is_unchanged(self, reading: Reading) -> bool:
        """See `Source`. The engine compares the tables, in a fraction of the time of a reading."""
        if reading.mark is None:
            return False
        with self._database.snapshot() as snapshot:
            return snapshot.mark() == reading.mark

    def warnings(self) -> list[str]:
        """See `Source`."""
        found = []
        if self._database.may_write():
            found.append(
                f"the account of {self.shown} may write to it; one that may only SELECT is enough,"
                " and safer"
            )
        if self._database.is_read_only():
            found.append(
                f"{self.shown} is read-only: if it is a replica, it may lack the last changes, so"
                " finish from the server that it copies"
            )
        return found

    def behind(self) -> str | None:
        """See `Source`. Such a server has the same content twice even if it lags for hours."""
        if not self._database.is_standby():
            return None
        return (
            f"{self.shown} is a standby, which may lack the last changes: finish with the address"
            " of its primary"
        )

    def close(self) -> None:
        """See `Source`."""
        self._database.close()


def read_snapshot(snapshot: Snapshot, oddities: Oddities, progress: Progress = silent) -> Reading:
    """Read all tables of a snapshot. Raises SourceError."""
    tables = _Tables(snapshot, progress)
    classes = Names(tables("resource_classes"), CLASSES, oddities, "class_unknown")
    traits = Names(tables("traits"), TRAITS, oddities, "trait_unknown")
    providers = Providers(tables("resource_providers"), oddities)
    providers.add_inventories(tables("inventories"), classes)
    providers.add_traits(tables("resource_provider_traits"), traits)
    providers.add_aggregates(
        tables("resource_provider_aggregates"), list(tables("placement_aggregates"))
    )
    consumers = Consumers(providers, classes, oddities)
    consumers.add_allocations(tables("allocations"))
    owners = Owners(*(list(tables(name)) for name in ("projects", "users", "consumer_types")))
    consumers.add_consumers(tables("consumers"), owners)
    consumers.end()
    classes.end()
    traits.end()
    rows = Rows(classes.rows, traits.rows, providers.encoded(), consumers.rows)
    return Reading(rows, oddities, snapshot.head)


class _Tables:
    """The tables of a snapshot, with one progress for all of them."""

    def __init__(self, snapshot: Snapshot, progress: Progress) -> None:
        self._snapshot = snapshot
        self._progress = progress
        self._done = 0
        self._total = sum(map(snapshot.count, snapshot.tables))

    def __call__(self, table: str) -> Iterator[tuple[Any, ...]]:
        for row in self._snapshot.rows(table):
            yield row
            self._done += 1
            if self._done % STEP == 0:
                self._progress("reading", self._done, max(self._total, self._done))
