"""The ledger's rows: providers, inventories, traits, aggregates, consumers and allocations.

`rows.py` says how values stand in rows. `load.py` turns keys into facts, `save.py` changes into
rows, `changes.py` writes and reads change rows, `reads.py` answers queries from rows. May import:
the root of `store`, `core/ledger`.
"""
