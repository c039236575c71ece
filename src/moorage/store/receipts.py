"""Deletes old receipts of transactions. Only PostgreSQL has them, see `postgres/commit.py`."""

from moorage.store.api import Plan, Query

FIRST = "-infinity"
"""Earlier than every receipt."""


def receipts_forget(after: str, rows_max: int) -> Plan[tuple[int, str]]:
    """Delete the oldest receipts that are no longer needed, at most `rows_max`.

    Returns their number, and the time to pass as `after` next time: so deleted rows that an open
    snapshot keeps are not scanned again. Deletes nothing while another process is compacting.
    """
    ((mine,),), ((until,),) = yield [Query("compaction_lock"), Query("receipts_until")]
    if not mine:
        return 0, after
    (((gone, last),),) = yield [Query("receipts_delete", (after, until, rows_max))]
    return int(gone), str(until if gone < rows_max else last)
