"""The batch is the transaction: up to 64 requests share one load, one save and one COMMIT.

Start with `transactor.py`: it queues requests and commits. `use_case.py` says what a request is.
`batch.py` carries out one batch in its transaction, `granting.py` is admission's share of it.
`misfits.py` remembers tickets that do not fit into the ledger. `service_time.py` tells the time of
a batch. May import: `feed`, the root of `service`, `store`, `core`; no room.
"""
