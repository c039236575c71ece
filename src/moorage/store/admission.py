"""Admission's plans, under one name: load facts and lines, save changes, read, forget.

`admission_load.py` loads, `admission_save.py` saves, `admission_reads.py` looks,
`admission_check.py` compares every column, with the sums of `admission_tally.py`;
`admission_rows.py` knows the columns.
"""

from moorage.store.admission_check import differences_load
from moorage.store.admission_load import facts_load, lines_load
from moorage.store.admission_reads import (
    End,
    LeaseSeen,
    LeasesSeen,
    OutcomeCount,
    Past,
    PoolSeen,
    PoolsSeen,
    Report,
    SlotCount,
    Ticket,
    holders_load,
    lease_load,
    lease_load_by_token,
    leases_window,
    line_window,
    next_due_load,
    pasts_load,
    pool_load,
    pools_window,
    report_load,
    slots_count,
    slots_load,
    timeline_load,
    unheard_count,
)
from moorage.store.admission_rows import change_rows
from moorage.store.admission_save import forget, writes

__all__ = [
    "End",
    "LeaseSeen",
    "LeasesSeen",
    "OutcomeCount",
    "Past",
    "PoolSeen",
    "PoolsSeen",
    "Report",
    "SlotCount",
    "Ticket",
    "change_rows",
    "differences_load",
    "facts_load",
    "forget",
    "holders_load",
    "lease_load",
    "lease_load_by_token",
    "leases_window",
    "line_window",
    "lines_load",
    "next_due_load",
    "pasts_load",
    "pool_load",
    "pools_window",
    "report_load",
    "slots_count",
    "slots_load",
    "timeline_load",
    "unheard_count",
    "writes",
]
