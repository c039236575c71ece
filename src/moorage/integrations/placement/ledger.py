"""Our ledger as an import sees it: pages of encoded rows, and chunks that are written."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus

import msgspec

from moorage.client.decoding import UndecodableError
from moorage.client.imports import Imports
from moorage.integrations.placement.rows import RowKind, encoded, key_of
from moorage.wire.imports import LedgerRows
from moorage.wire.operations import imports
from moorage.wire.pages import PAGE_MAX

ALIKE = 16
"""Rows to ask for in search of one: as many UUIDs as differ only in their last digit."""

_decode = msgspec.json.Decoder(LedgerRows).decode


class Ledger(Imports):
    """The rows of the ledger of one server. Calls raise as those of `Imports`.

    A hundred thousand rows are read for each pass, so they are decoded by msgspec.
    """

    def page(self, kind: str, after: str = "", limit: int = PAGE_MAX) -> LedgerRows:
        """See `Imports`."""
        operation = imports.LIST_LEDGER_ROWS
        address = operation.address(query={"kind": kind, "after": after, "limit": limit})
        connection = self._transport.connection()
        try:
            status, _, raw = self._transport.got(connection, address, {})
        finally:
            connection.close()
        if status != HTTPStatus.OK:
            return super().page(kind, after, limit)  # it raises, unless the refusal was temporary
        try:
            return _decode(raw)
        except msgspec.DecodeError as error:
            raise UndecodableError(f"the server is not a Moorage server: {error}") from None

    def _all(self, kind: str) -> Iterator[LedgerRows]:
        """Yield all pages; the server reads the next one meanwhile."""
        page = self.page(kind)
        with ThreadPoolExecutor(1) as pool:
            while page.next is not None:
                following = pool.submit(self.page, kind, page.next)
                yield page
                page = following.result()
            yield page

    def rows(self, kind: RowKind) -> Iterator[tuple[str, bytes]]:
        """Yield all rows of a kind with their names or UUIDs."""
        found = getattr(self, kind)
        for row in found():
            yield key_of(row), encoded(row)

    def row(self, kind: RowKind, key: str) -> bytes | None:
        """Return one row; None: it is not there."""
        after = key[:-1]
        while True:
            page = self.page(kind, after, ALIKE)
            for row in getattr(page, kind):
                if key_of(row) >= key:
                    return encoded(row) if key_of(row) == key else None
            if page.next is None:
                return None
            after = page.next
