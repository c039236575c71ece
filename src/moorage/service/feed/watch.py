"""The change feed for clients: ordered, from any cursor, waiting for new changes.

A reader's whole state is its cursor. Between two reads it has no transaction, thread or row, and
any process on the same database can serve it.
"""

import asyncio
from collections.abc import Collection

from msgspec import Struct

from moorage.core.errors import Code, Error
from moorage.core.limits import CURSOR_DIGITS_MAX
from moorage.service import errors
from moorage.service.feed.bell import Bell
from moorage.store.api import Engine
from moorage.store.changelog import KINDS, WHOLE, ChangeRow, changes_window

ROWS_MAX = 500
"""Change rows that are read at a time."""

GATHER_SECONDS = 0.01
"""How long to wait after a wake-up, so that one read covers several batches."""


class Cursor(Struct, frozen=True, order=True):
    """A position between two changes: after the n-th change of a revision, or after all of it."""

    epoch: int
    revision: int
    n: int = WHOLE

    def __str__(self) -> str:
        whole = f"{self.epoch}.{self.revision}"
        return whole if self.n == WHOLE else f"{whole}.{self.n}"

    @classmethod
    def parse(cls, text: str) -> "Cursor":
        """Parse `EPOCH.REVISION` or `EPOCH.REVISION.N`. Raises `Error`: INVALID."""
        parts = text.split(".")
        good = all(
            part.isascii() and part.isdigit() and len(part) <= CURSOR_DIGITS_MAX for part in parts
        )
        if not good or len(parts) not in (2, 3):
            raise Error(
                Code.INVALID,
                f"{text!r} is not a cursor: it must be EPOCH.REVISION or EPOCH.REVISION.N.",
            )
        return cls(*map(int, parts))


class ChangesGoneError(Error):
    """The reader has missed changes: it must read everything again, then continue from `oldest`."""

    def __init__(self, cursor: Cursor, oldest: Cursor) -> None:
        super().__init__(
            Code.CHANGES_GONE,
            f"The changes after {cursor} are no longer kept: read everything again. "
            f"The oldest cursor that can be resumed from is {oldest}.",
        )
        self.oldest = oldest


class Seen(Struct, frozen=True):
    """One change, with the cursor after it."""

    row: ChangeRow
    cursor: Cursor


class Window(Struct, frozen=True):
    """Changes in order, and the cursor to continue from."""

    changes: list[Seen]
    next: Cursor
    cut: bool
    """Whether more rows follow already."""


class Watch:
    """Reads change rows for clients. Each method raises `Error`: UNAVAILABLE."""

    def __init__(self, engine: Engine, bell: Bell) -> None:
        self._engine = engine
        self._bell = bell

    @property
    def closed(self) -> bool:
        """Whether the service is stopping; then no call waits."""
        return self._bell.closed

    def close(self) -> None:
        """End all waits: their requests are answered with the current state."""
        self._bell.close()

    async def now(self) -> Cursor:
        """Return the cursor after every change that was acknowledged before this call."""
        with errors.translated():
            window = await self._engine.read(changes_window(WHOLE, WHOLE, 1))
        return Cursor(window.epoch, window.revision)

    async def window(
        self, after: Cursor, kinds: Collection[str] = KINDS, rows_max: int = ROWS_MAX
    ) -> Window:
        """Return the changes of some kinds among the next `rows_max` changes after a cursor.

        Raises `Error`: CHANGES_GONE (a `ChangesGoneError`) if the next of them was deleted.
        """
        with errors.translated():
            found = await self._engine.read(changes_window(after.revision, after.n, rows_max + 1))
        newest = Cursor(found.epoch, found.revision)
        oldest = Cursor(found.epoch, found.compacted)
        if after.epoch != found.epoch or after < oldest or after.revision > newest.revision:
            raise ChangesGoneError(after, oldest)
        rows = found.rows[:rows_max]
        cut = len(found.rows) > rows_max
        following = [row.revision for row in found.rows[1:]]
        changes = [
            Seen(row, Cursor(found.epoch, row.revision, row.n if more == row.revision else WHOLE))
            for row, more in zip(rows, [*following, 0], strict=False)
        ]
        there = changes[-1].cursor if cut else newest
        return Window([one for one in changes if one.row.kind in kinds], there, cut)

    async def awaited(
        self,
        after: Cursor,
        kinds: Collection[str] = KINDS,
        *,
        seconds: float,
        rows_max: int = ROWS_MAX,
    ) -> Window:
        """As `window`, but wait up to `seconds` for a change; after that there may be none."""
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while True:
            ring = self._bell.listen()
            window = await self.window(after, kinds, rows_max)
            rest = end - loop.time()
            if window.changes or self.closed or rest <= 0:
                return window
            after = window.next
            if window.cut:
                await asyncio.sleep(0)  # lets other tasks run between two reads
                continue
            try:
                async with asyncio.timeout(rest):
                    await ring.wait()
                    await asyncio.sleep(GATHER_SECONDS)
            except TimeoutError:
                continue
