"""The change rows for readers outside: in order, from any place, waited for when there are none.

A reader is a cursor and nothing else: between two looks it holds no transaction, no thread and no
row, and any process that shares the database can answer it.
"""

import asyncio
from collections.abc import Collection

from msgspec import Struct

from moorage.core.errors import Code, Error
from moorage.service import errors
from moorage.service.feed.bell import Bell
from moorage.store import pages as window_store
from moorage.store.api import Engine
from moorage.store.changelog import KINDS, WHOLE
from moorage.store.pages import ChangeRow

ROWS_MAX = 500
"""Change rows that are looked at in one go."""

GATHER_SECONDS = 0.01
"""How long to wait after a wake-up, so that one look answers for many batches."""

DIGITS_MAX = 18


class Cursor(Struct, frozen=True, order=True):
    """A place between two changes: after the n-th change of a revision, or after all of them."""

    epoch: int
    revision: int
    n: int = WHOLE

    def __str__(self) -> str:
        whole = f"{self.epoch}.{self.revision}"
        return whole if self.n == WHOLE else f"{whole}.{self.n}"

    @classmethod
    def parse(cls, text: str) -> "Cursor":
        """Read `EPOCH.REVISION` or `EPOCH.REVISION.N`. Raises `Error`: INVALID."""
        parts = text.split(".")
        good = all(part.isascii() and part.isdigit() and len(part) <= DIGITS_MAX for part in parts)
        if not good or len(parts) not in (2, 3):
            raise Error(Code.INVALID, f"{text!r} is no cursor: EPOCH.REVISION or EPOCH.REVISION.N.")
        return cls(*map(int, parts))


class ChangesGoneError(Error):
    """The reader has missed something: it must read everything anew, then go on from `oldest`."""

    def __init__(self, cursor: Cursor, oldest: Cursor) -> None:
        super().__init__(
            Code.CHANGES_GONE,
            f"What follows {cursor} is not kept; read everything anew. "
            f"The oldest cursor that can be resumed from is {oldest}.",
        )
        self.oldest = oldest


class Seen(Struct, frozen=True):
    """One change, with the cursor after it."""

    row: ChangeRow
    cursor: Cursor


class Window(Struct, frozen=True):
    """Changes in order, and the cursor to go on from."""

    changes: list[Seen]
    next: Cursor
    cut: bool
    """There is more already."""


class Watch:
    """Answers readers of the change rows. Each method raises `Error`: UNAVAILABLE."""

    def __init__(self, engine: Engine, bell: Bell) -> None:
        self._engine = engine
        self._bell = bell

    @property
    def closed(self) -> bool:
        """Is the service ending? Then nobody is made to wait."""
        return self._bell.closed

    def close(self) -> None:
        """Answer everybody who waits with what there is."""
        self._bell.close()

    async def now(self) -> Cursor:
        """Return the cursor after every change that was acknowledged before this call."""
        with errors.told():
            window = await self._engine.read(window_store.changes_window(WHOLE, WHOLE, 1))
        return Cursor(window.epoch, window.revision)

    async def window(
        self, after: Cursor, kinds: Collection[str] = KINDS, rows_max: int = ROWS_MAX
    ) -> Window:
        """Return the changes of some kinds among the next `rows_max` changes after a cursor.

        Raises `Error`: CHANGES_GONE (a `ChangesGoneError`) when the next of them is not kept.
        """
        with errors.told():
            found = await self._engine.read(
                window_store.changes_window(after.revision, after.n, rows_max + 1)
            )
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
        """As `window`, but wait up to `seconds` for a change; the changes may be none."""
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
                await asyncio.sleep(0)  # others are served between two looks
                continue
            try:
                async with asyncio.timeout(rest):
                    await ring.wait()
                    await asyncio.sleep(GATHER_SECONDS)
            except TimeoutError:
                continue
