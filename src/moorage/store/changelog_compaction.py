"""Which change rows are forgotten, and how: some revisions at a time, each in a short transaction.

Rows are found by their keys alone. Nothing walks over the rows that are kept: how many there are is
known by blocks of revisions, each of which is counted once.
"""

from collections.abc import Iterator

from moorage.core.clock import Instant
from moorage.store.api import Plan, Query, Write
from moorage.store.changelog import change_time_load

BLOCK_REVISIONS_MAX = 1_000
"""Revisions whose change rows are counted together."""

REVISIONS_MAX = 25
"""Revisions that one transaction forgets."""


class Keep:
    """How many change rows stay, and what is known of their number; one per process.

    At least the newest `rows_min` stay, and all that are young. Of more than `rows_max` the oldest
    go, young or not. Both are rounded to whole blocks.
    """

    def __init__(self, rows_min: int, rows_max: int | None = None) -> None:
        self.rows_min = rows_min if rows_max is None else min(rows_min, rows_max)
        self.rows_max = rows_max
        self.block = max(1, min(BLOCK_REVISIONS_MAX, self.rows_min // 4))
        self._epoch = 0
        self._rows: dict[int, int] = {}
        """Rows of whole blocks, by their last revision."""

    def renew(self, epoch: int, compacted: int, revision: int) -> None:
        """Forget what is known of blocks that are gone, or of another history."""
        if epoch != self._epoch:
            self._epoch, self._rows = epoch, {}
        for end in [end for end in self._rows if not compacted + self.block <= end <= revision]:
            del self._rows[end]

    def blocks(self, compacted: int, revision: int) -> Iterator[tuple[int, int]]:
        """Yield (before its first revision, its last revision) of each block, newest first."""
        end = revision
        while end > compacted:
            begin = max(compacted, (end - 1) // self.block * self.block)
            yield begin, end
            end = begin

    def rows(self, begin: int, end: int) -> Plan[int]:
        """Return how many rows a block has: counted the first time only, if it is whole."""
        known = self._rows.get(end)
        if known is None:
            (((known,),),) = yield [Query("changes_count", (begin, end))]
            if end - begin == self.block:
                self._rows[end] = known
        return int(known)


def compaction_mark_load(keep_since: Instant, keep: Keep) -> Plan[int]:
    """Return the newest revision whose change rows go, or went already. Run it aside."""
    (((epoch, revision, compacted),),) = yield [Query("clock_load")]
    keep.renew(epoch, compacted, revision)
    old = yield from _newest_before(keep_since, compacted, revision)
    enough, most = yield from _marks(keep, compacted, revision)
    return max(most, min(old, enough))


def _newest_before(since: Instant, low: int, high: int) -> Plan[int]:
    """Return the newest revision of those after `low` that is older; `low`: there is none.

    Revisions and times rise together, so a few of them tell.
    """
    while low < high:
        middle = (low + high + 1) // 2
        at = yield from change_time_load(middle)
        if at is not None and at < since:
            low = middle
        else:
            high = middle - 1
    return low


def _marks(keep: Keep, compacted: int, revision: int) -> Plan[tuple[int, int]]:
    """Return the revision after which there are enough rows, and that after which are too many.

    Where there are not so many it is `compacted`. As many revisions as a block has stay anyway:
    others may not have read them yet.
    """
    enough = compacted
    rows = 0
    for begin, end in keep.blocks(compacted, revision):
        more = yield from keep.rows(begin, end)
        if rows >= keep.rows_min and enough == compacted:
            enough = end
        too_many = keep.rows_max is not None and rows + more > keep.rows_max
        if too_many and revision - end >= keep.block:
            return enough, end
        rows += more
    return enough, compacted


def compact(mark: int, revisions_max: int = REVISIONS_MAX) -> Plan[int]:
    """Forget change rows up to revision `mark`, the oldest `revisions_max` revisions of them.

    Returns the mark that has been reached; call again, in another transaction, until it is `mark`.
    Whoever comes while another process is at it leaves it to that one. If the database was put back
    to before the mark, nothing is forgotten: all that is kept would seem to have been missed.
    """
    ((mine,),), ((_, revision, compacted),) = yield [Query("compaction_lock"), Query("clock_load")]
    if not mine or mark > revision:
        return mark
    reached = min(mark, compacted + revisions_max)
    if reached <= compacted:
        return int(compacted)
    yield [Write("changes_delete", [(compacted, reached)]), Write("clock_compact", [(reached,)])]
    return int(reached)
