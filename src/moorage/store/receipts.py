"""Receipts of transactions, forgotten by age. PostgreSQL alone has them: `postgres_commit.py`."""

from moorage.store.api import Plan, Query

FIRST = "-infinity"
"""Before every receipt."""


def receipts_forget(after: str, rows_max: int) -> Plan[tuple[int, str]]:
    """Forget the oldest receipts, of those that nobody asks for any more, at most `rows_max`.

    Returns how many it was, and from when on to look the next time (`after`): what was forgotten
    before is not passed again, even if an open snapshot keeps it. Whoever comes while another
    process is at it leaves it to that one.
    """
    ((mine,),), ((until,),) = yield [Query("compaction_lock"), Query("receipts_until")]
    if not mine:
        return 0, after
    (((gone, last),),) = yield [Query("receipts_delete", (after, until, rows_max))]
    return int(gone), str(until if gone < rows_max else last)
