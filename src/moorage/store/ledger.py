"""The ledger's plans, under one name: load facts, save changes, read, follow.

`load.py` loads, `save.py` saves, `log.py` keeps the change rows, `compaction.py` forgets them,
`reads.py` looks.
"""

from moorage.store.compaction import Keep, compact, compaction_mark_load
from moorage.store.load import facts_load
from moorage.store.log import (
    FLEET_KINDS,
    Batch,
    Snapshot,
    Tail,
    change_time_load,
    changes_load,
    clock_load,
    snapshot_read,
    wipe,
)
from moorage.store.reads import (
    ProviderAllocation,
    Usages,
    beginning_load,
    consumer_load,
    provider_allocations_load,
    usages_load,
)
from moorage.store.save import Before, before_of, changes_save

__all__ = [
    "FLEET_KINDS",
    "Batch",
    "Before",
    "Keep",
    "ProviderAllocation",
    "Snapshot",
    "Tail",
    "Usages",
    "before_of",
    "beginning_load",
    "change_time_load",
    "changes_load",
    "changes_save",
    "clock_load",
    "compact",
    "compaction_mark_load",
    "consumer_load",
    "facts_load",
    "provider_allocations_load",
    "snapshot_read",
    "usages_load",
    "wipe",
]
