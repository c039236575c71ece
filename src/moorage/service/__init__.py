"""One function or class = one use case; the batch is the transaction.

`ledger.py` holds the use cases that change the ledger, `claims.py` the one that chooses, `bulk.py`
those about many providers at once, `reads.py` those that only look. `transactor.py` batches,
commits and retries; `index.py` keeps the candidate index. `access.py` is about tokens, `roles.py`
about what they permit, `audit.py` about who did what, which `audit_log.py` also writes to the log;
`looks.py` are looks at a shared database that requests have in common, `turns.py` lets long work
take turns. `upkeep.py` is about checks and backups, `chores.py` what runs by itself. `watch.py`
answers those who follow the changes, woken by the bell of `wakeups.py`. Of admission `admission.py`
is the door: cases are in `pooling.py`, `leasing.py` and `boskos_cases.py`, grants in `granting.py`,
and `sweeper.py` and `claimants.py` are what it does by itself. `app.py` joins them all. May import:
`store`, `core`, `wire`.
"""
