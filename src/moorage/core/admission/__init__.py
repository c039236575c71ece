"""May it start now: pools, leases, the waiting line, and the one function that grants.

Pure, like all of the core: facts in, changes out. Start with `model.py` (the values), then
`admit.py` (who is next) and `leases.py` (what a holder may do). May import `wire` and the rest of
the core's root; not the other rooms.
"""
