"""The ledger's rows: providers, inventories, traits, aggregates, consumers and allocations.

`rows.py` maps values to rows. `load.py` turns keys into facts, `save.py` turns changes into rows,
`changes.py` writes and reads change rows, `reads.py` answers queries from rows, `usages.py` sums
them up, `reshapes.py` has the rows of reshapes, `check.py` compares them with themselves. May
import: the root of `store`, `core/ledger`.
"""
