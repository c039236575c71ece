"""The rule of when a host that works on something occupies a unit of a pool, and until when.

`walk.py` is pure: no I/O and no clock. `episodes.py` keeps its steps in the records of leases,
`pools.py` checks that pools can hold them.
May import: `client`, `wire`.
"""
