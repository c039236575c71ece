"""Reads change rows: some at a time, as whole batches of one history."""

from collections.abc import AsyncGenerator, Collection

from moorage.store import changelog
from moorage.store.api import Engine
from moorage.store.changelog import WHOLE, Tail


class ChangesGone(Exception):
    """The change rows do not continue from this revision: a new snapshot is needed."""


async def tails(
    engine: Engine, revision: int, kinds: Collection[str]
) -> AsyncGenerator[Tail, None]:
    """Yield the changes of these kinds after a revision, some rows at a time, oldest first.

    Every batch is complete: one that a window of rows cuts is yielded with the next window. Yields
    at least once. Raises ChangesGone: the next window does not continue the last one's history.
    """
    place: tuple[int, int] | None = (revision, WHOLE)
    cut: list[changelog.Batch] = []
    while place is not None:
        tail = await engine.look(changelog.changes_load(*place, kinds=kinds))
        if cut and tail.at != cut[0].at:
            raise ChangesGone
        if cut and tail.batches and tail.batches[0].revision == cut[0].revision:
            cut[0].extend(tail.batches.pop(0))
        tail.batches[:0] = cut
        cut = [tail.batches.pop()] if tail.place is not None else []
        place = tail.place
        yield tail
