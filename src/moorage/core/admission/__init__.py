"""What may start now: pools, leases, the waiting line, and the one function that grants.

Pure, like all of the core: facts in, changes out.

* Values: `model.py`; `facts.py` is what a decision may read and change, `draft.py` collects changes
  and is the only place where stored sums move.
* Granting: `admit.py` decides what is granted next. `bars.py` defines which tickets are passed
  over, `units.py` counts free units, `pacing.py` spaces grants, `immediate.py` defines requests
  that never wait.
* Leases: `requests.py` defines requests, `leases.py` the operations of a holder, `retries.py` how
  it asks again, `expiry.py` what expires and what confirms a grant, `late_releases.py` releases
  that come after the end.
  `owners.py` lists owners that are not callers. `line/` is what operators do with tickets.
* Pools: `pools.py` changes them, `bounds.py` limits requests to them. `slots.py` is about named
  units, `slot_config.py` about which slots exist, `slot_growth.py` makes new ones; `slotted/` has
  changes of single slots, and who gets which.
* `forecast/` explains why a ticket waits and for how long; `compat/` has the rules of Boskos and
  the lease proxy.

May import: `wire` and the root of `core`; not the other rooms.
"""
