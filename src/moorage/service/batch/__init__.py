"""The batch is the transaction: up to 64 requests share one load, one save and one COMMIT.

Start with `transactor.py`: it commits. `request_queue.py` is where requests wait. `use_case.py`
defines what a request is, `world.py` what it may read and change. `batch.py` carries out one batch
in its transaction. `rooms.py` is where a room plugs in: `ledger_room.py` loads and saves the
ledger, `admission_room.py` admission, which also grants; `ledger_share.py` is what leases take from
the ledger. `fleet_room.py` loads and saves agents, `machine_offer.py` is what the ledger takes over
from them. `member_counts.py` counts reporters, which some limits follow. `extra_loads.py` is what a
batch finds out that it needs besides. `misfits.py` remembers tickets that do not fit into the
ledger. `stop_requests.py` is what the audit trail keeps of preemption. `import_room.py` reads
whether a ledger is imported, and refuses what would change it, `reshape_room.py` keeps what a
reshape has done. `service_clock.py` tells the time of a batch. May import: `feed`, the root of
`service`, `store`, `core`; no room.
"""
