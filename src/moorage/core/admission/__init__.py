"""What may start now: pools, leases, the waiting line, and the one function that grants.

Pure, like all of the core: facts in, changes out.

* Values: `model.py`; `facts.py` is what a decision may read and change, `draft.py` collects changes
  and is the only place where stored sums move.
* Granting: `admit.py` decides what is granted next. `bars.py` defines which tickets are passed
  over, `units.py` counts free units, `pacing.py` spaces grants.
* Bookings: `bookings.py` accepts and changes them, `profile.py` says what is spoken for at each
  moment, `booked_pools.py` what that permits in one pass of `admit`.
* Leases: `requests.py` defines requests, `leases.py` the operations of a holder, `expiry.py` what
  expires and what confirms a grant, `late_releases.py` releases that come after the end.
  `owners.py` lists owners that are not callers. `operator_actions.py` is what operators do with
  tickets and leases of others, `effects.py` what a decision makes of leases and tickets.
* Pools: `pools.py` changes and pauses them, and ends pauses; `bounds.py` limits requests to them.
  `slots.py` is about named units and who gets which, `slot_config.py` about which slots exist,
  `slot_changes.py` about what operators do with single slots.
* `forecast/` explains why a ticket waits and for how long; `compat/` has the rules of Boskos and
  the lease proxy.

May import: `wire` and the root of `core`; not the other rooms.
"""
