"""May it start now: pools, leases, the waiting line, and the one function that grants.

Pure, like all of the core: facts in, changes out. Start with `model.py` (the values), then
`admit.py` (who is next, with `rules.py`, `units.py`, `pacing.py`), `leases.py` (what a holder may
do), `ending.py` (what ends by itself), `pools.py`, `bounds.py` (what a pool lets its users ask
for), and `line.py` with `queueing.py` and `eta.py` (why it waits, behind whom, and for how long).
`boskos.py`, `boskos_strict.py` and `at_once.py` acquire as Boskos does, `proxied.py` and
`late_releases.py` are about the lease proxy. `roster.py` and `growing.py` say which slots there
are, `draft.py` is where stored sums move, `timeline.py` what time it is. May import `wire` and the
rest of the core's root; not the other rooms.
"""
