"""Deletes old change rows: some revisions at a time, in short transactions.

Rows are found by their keys alone. The kept rows are not scanned each time: they are counted by
blocks of revisions, each block once.
"""

from collections.abc import Iterator

from moorage.core.clock import Instant
from moorage.store.api import Plan, Query, Write
from moorage.store.changelog import change_time_load

BLOCK_REVISIONS_MAX = 1_000
"""Revisions whose change rows are counted together."""

REVISIONS_MAX = 25
"""Revisions whose rows one transaction deletes."""


class ChangelogRetention:
    """How many change rows to keep, and the counts known so far; one per process.

    The newest `rows_min` rows and all recent rows are kept. Beyond `rows_max` rows or `bytes_max`
    bytes the oldest are deleted, even recent ones. All limits are rounded to whole blocks.
    """

    def __init__(
        self, rows_min: int, rows_max: int | None = None, bytes_max: int | None = None
    ) -> None:
        self.bytes_max = bytes_max
        self.bytes = 0
        """Bytes of the rows that are kept, as of the last look."""
        self.rows_min = rows_min if rows_max is None else min(rows_min, rows_max)
        self.rows_max = rows_max
        self.block = max(1, min(BLOCK_REVISIONS_MAX, self.rows_min // 4))
        self._epoch = 0
        self._rows: dict[int, tuple[int, int]] = {}
        """Numbers and bytes of rows of whole blocks, by their last revision."""

    def renew(self, epoch: int, compacted: int, revision: int) -> None:
        """Drop the counts of deleted blocks, and all counts if the epoch has changed."""
        if epoch != self._epoch:
            self._epoch, self._rows = epoch, {}
        for end in [end for end in self._rows if not compacted + self.block <= end <= revision]:
            del self._rows[end]

    def blocks(self, compacted: int, revision: int) -> Iterator[tuple[int, int]]:
        """Yield (the revision before its first, its last revision) of each block, newest first."""
        end = revision
        while end > compacted:
            begin = max(compacted, (end - 1) // self.block * self.block)
            yield begin, end
            end = begin

    def rows(self, begin: int, end: int) -> Plan[tuple[int, int]]:
        """Return the number and bytes of rows of a block; a whole block is only counted once."""
        known = self._rows.get(end)
        if known is None:
            (((count, size),),) = yield [Query("changes_count", (begin, end))]
            known = int(count), int(size)
            if end - begin == self.block:
                self._rows[end] = known
        return known


def compaction_mark_load(keep_since: Instant, keep: ChangelogRetention) -> Plan[int]:
    """Return the newest revision whose change rows may go or are gone. Use `read_aside`."""
    (((epoch, revision, compacted),),) = yield [Query("clock_load")]
    keep.renew(epoch, compacted, revision)
    old = yield from _newest_before(keep_since, compacted, revision)
    enough, most = yield from _marks(keep, compacted, revision)
    return max(most, min(old, enough))


def _newest_before(since: Instant, low: int, high: int) -> Plan[int]:
    """Return the newest revision after `low` that was written before `since`, or `low` if none.

    Times rise with revisions, so this is a binary search.
    """
    while low < high:
        middle = (low + high + 1) // 2
        at = yield from change_time_load(middle)
        if at is not None and at < since:
            low = middle
        else:
            high = middle - 1
    return low


def _marks(keep: ChangelogRetention, compacted: int, revision: int) -> Plan[tuple[int, int]]:
    """Return the revisions up to which rows may go (`rows_min` remain) and must go (too many).

    Each is `compacted` if there are not that many rows. The newest revisions, as many as a block
    has, are always kept: other processes may not have read them yet.
    """
    enough = compacted
    rows, keep.bytes = 0, 0
    for begin, end in keep.blocks(compacted, revision):
        more, size = yield from keep.rows(begin, end)
        if rows >= keep.rows_min and enough == compacted:
            enough = end
        too_many = keep.rows_max is not None and rows + more > keep.rows_max
        too_large = keep.bytes_max is not None and keep.bytes + size > keep.bytes_max
        if (too_many or too_large) and revision - end >= keep.block:
            return enough, end
        rows, keep.bytes = rows + more, keep.bytes + size
    return enough, compacted


def compact(mark: int, revisions_max: int = REVISIONS_MAX) -> Plan[int]:
    """Delete change rows up to revision `mark`: of the oldest `revisions_max` revisions.

    Returns the revision reached: until it is `mark`, call it again in another transaction. Returns
    `mark` without deleting anything if another process is compacting, or if the database was
    restored to a state before `mark`: followers would seem to have missed all remaining rows.
    """
    ((mine,),), ((_, revision, compacted),) = yield [Query("compaction_lock"), Query("clock_load")]
    if not mine or mark > revision:
        return mark
    reached = min(mark, compacted + revisions_max)
    if reached <= compacted:
        return int(compacted)
    yield [Write("changes_delete", [(compacted, reached)]), Write("clock_compact", [(reached,)])]
    return int(reached)
