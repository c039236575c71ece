"""Admission's rows: pools, slots, leases, tickets and outcomes.

`rows.py` maps values to rows. `load.py` turns keys into facts and reads lines, `save.py` turns
changes into rows, `changes.py` writes and reads change rows. `reads.py` answers queries from rows,
`contents.py` reads all that is in a pool, `line_pass.py` a whole line to compute positions and
waiting times, `tenants.py` whose lease a consumer is. `check.py` compares every column with the
bodies, and sums with the leases. May import: the root of `store`, `core/admission`.
"""
