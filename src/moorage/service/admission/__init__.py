"""Use cases of admission: pools, leases and waiting lines.

`service.py` is what faces call to wait for a lease, and to get a lease or pool that they change.
`lease_cases.py`, `handing_cases.py` (leases that change hands or are kept), `pool_cases.py`,
`slots.py` (single slots) and `ending.py` (ends by others than the holder) have the requests that
change something, `queries.py` those that read, `past.py` those about the past; `template_cases.py`
has those of templates, `pool_specs.py` converts what a pool should be. `booking_cases.py` has the
requests that change bookings, whose windows `recurrence.py` computes, `calendars.py` those that
read. `views.py` has their results, `positions.py` the positions of tickets in line.
`waiters.py` wakes long polls, `confirmations.py` stores what connections show: clients that are
gone, grants that were read.
`sweeper.py` ends due leases and tickets and grants what becomes possible with time,
`capacity_retry.py` retries tickets when the ledger has changed; both use `sweeps.py`. `counters.py`
counts for metrics, `ended.py` says how long ended leases are kept, `lease_log.py` logs grants and
ends. `member_limits.py` lowers limits that follow the members of groups of reporters.
May import: `batch`, `feed`, `access`, the root of `service`, `store`, `core`.
"""
