"""The typed native API for moving a ledger in from another one, and its rows out."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from moorage.client.calling import Room
from moorage.wire.imports import (
    ConsumerRow,
    ImportShown,
    LedgerRows,
    NameRow,
    ProviderRow,
    RowsWanted,
)
from moorage.wire.operations import imports
from moorage.wire.pages import PAGE_MAX

ABORT_SECONDS_MAX = 3600.0
"""How long to wait until all rows are deleted again."""


class Imports(Room):
    """The import of another ledger into that of one server, and its rows.

    Every call raises UnreachableError and RefusedError, and UndecodableError if the answer is not
    from a Moorage server. Every call may be repeated.
    """

    def begin(
        self, source: str, *, writer: str | None = None, resumes: bool = False
    ) -> ImportShown:
        """Begin to import into an empty ledger, or resume the import of the same source.

        From then on rows and the end of other writers are refused with `import_taken`. `resumes`:
        nothing new is begun. RefusedError with the code `ledger_in_use`: the ledger is not empty;
        `import_exists`: another source is being imported; `import_not_found`: nothing is resumed.
        """
        body = {"source": source, "writer": writer, "resumes": resumes}
        return self._call(imports.BEGIN_IMPORT, body=body)

    def under_way(self) -> ImportShown:
        """Return the import that is under way; RefusedError `import_not_found`: there is none."""
        return self._call(imports.GET_IMPORT)

    def write(self, rows: RowsWanted) -> None:
        """Write rows, and delete those that are gone: all or nothing, at most 1,000 of them."""
        self._call(imports.WRITE_IMPORTED_ROWS, body=rows_body(rows))

    def finish(self, writer: str | None = None) -> None:
        """End the import: from now on the ledger is used."""
        self._call(imports.FINISH_IMPORT, query={"writer": writer})

    def abort(self) -> None:
        """Delete everything that was imported, and end the import."""
        self._call(imports.ABORT_IMPORT, seconds_max=ABORT_SECONDS_MAX)

    def page(self, kind: str, after: str = "", limit: int = PAGE_MAX) -> LedgerRows:
        """Return rows of one kind after a name or UUID, as they are kept."""
        query = {"kind": kind, "after": after, "limit": limit}
        return self._call(imports.LIST_LEDGER_ROWS, query=query)

    def classes(self) -> Iterator[NameRow]:
        """Yield all custom resource classes, by name."""
        for page in self._all("classes"):
            yield from page.classes

    def traits(self) -> Iterator[NameRow]:
        """Yield all custom traits, by name."""
        for page in self._all("traits"):
            yield from page.traits

    def providers(self) -> Iterator[ProviderRow]:
        """Yield all providers, by UUID."""
        for page in self._all("providers"):
            yield from page.providers

    def consumers(self) -> Iterator[ConsumerRow]:
        """Yield all consumers, by UUID."""
        for page in self._all("consumers"):
            yield from page.consumers

    def _all(self, kind: str) -> Iterator[LedgerRows]:
        after: str | None = ""
        while after is not None:
            page = self.page(kind, after)
            yield page
            after = page.next


def rows_body(rows: RowsWanted) -> dict[str, Any]:
    """Return rows for JSON; `asdict` would take ten times as long."""
    gone = rows.gone
    return {
        "writer": rows.writer,
        "classes": [_name(one) for one in rows.classes],
        "traits": [_name(one) for one in rows.traits],
        "providers": [_provider(one) for one in rows.providers],
        "consumers": [_consumer(one) for one in rows.consumers],
        "gone": {
            "classes": gone.classes,
            "traits": gone.traits,
            "providers": gone.providers,
            "consumers": gone.consumers,
        },
    }


def _times(created_at: datetime, updated_at: datetime) -> dict[str, Any]:
    return {"created_at": created_at.isoformat(), "updated_at": updated_at.isoformat()}


def _name(row: NameRow) -> dict[str, Any]:
    return {"name": row.name, **_times(row.created_at, row.updated_at)}


def _provider(row: ProviderRow) -> dict[str, Any]:
    return {
        "uuid": row.uuid,
        "name": row.name,
        "generation": row.generation,
        "parent": row.parent,
        "inventories": {
            name: {
                "total": one.total,
                "reserved": one.reserved,
                "min_unit": one.min_unit,
                "max_unit": one.max_unit,
                "step_size": one.step_size,
                "allocation_ratio": one.allocation_ratio,
                **_times(one.created_at, one.updated_at),
            }
            for name, one in row.inventories.items()
        },
        "traits": row.traits,
        "aggregates": row.aggregates,
        **_times(row.created_at, row.updated_at),
    }


def _consumer(row: ConsumerRow) -> dict[str, Any]:
    return {
        "uuid": row.uuid,
        "generation": row.generation,
        "project": row.project,
        "user": row.user,
        "type": row.type,
        "allocations": row.allocations,
        **_times(row.created_at, row.updated_at),
    }
