"""What may start now: pools, leases, the waiting line, and the one function that grants.

Pure, like all of the core: facts in, changes out.

* Values: `model.py`, of bookings `booking_model.py`; `facts.py` is what a decision may read and
  change, `draft.py` collects changes and is the only place where stored sums move.
* Granting: `admit.py` decides what is granted next. `bars.py` defines which tickets are passed
  over, `units.py` counts free units, `pacing.py` spaces grants.
* Leases: `requests.py` defines requests, `alternatives.py` those for any of several needs.
  `leases.py` has the operations of a holder, `expiry.py` what expires and what confirms a grant,
  `late_releases.py` releases that come after the end. `superseding.py` lets only the newest
  request of a group wait, `handing_over.py` gives a lease to another owner, `keeping.py` keeps one
  for inspection. `owners.py` lists owners that are not callers. `operator_actions.py` is what
  operators do with tickets and leases of others.
* Bookings: `calendar/` keeps units of pools at a time.
* Pools: `pools.py` changes and pauses them, and ends pauses; `bounds.py` limits requests to them,
  `templates.py` makes those that requests need, and collects them.
  `slots.py` is about named units and who gets which, `slot_config.py` about which slots exist,
  `slot_changes.py` about what operators do with single slots.
* `adaptive/` moves the limit of a pool by the outcomes of starts; `sharing/` has fair shares,
  cohorts, and preemption.
* `forecast/` explains why a ticket waits and for how long; `compat/` has the rules of Boskos and
  the lease proxy.

May import: `wire` and the root of `core`; not the other rooms.
"""
