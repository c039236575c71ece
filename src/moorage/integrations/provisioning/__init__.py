"""The rule of when a host that works on something occupies a unit of a pool, and until when.

`walk.py` says which evidence releases a unit: it is pure, without I/O and clock. `episodes.py` asks
for units and keeps the steps of `walk.py` in the records of leases. `pools.py` checks that pools
can hold them.
May import: `client`, `wire`.
"""
