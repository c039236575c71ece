"""Use cases of admission: pools, leases and waiting lines.

`service.py` is the interface for faces. `pool_cases.py`, `lease_cases.py` and, for operators,
`line_cases.py` are the requests that change something, `queries.py` those that read, `past.py`
those about the past,
`key_ranges.py` the keys that have a prefix, `lease_requests.py` what is asked for and what its key
stands for, `lease_filter.py` which leases a list has; `views.py` has their results, `positions.py`
the positions of tickets in line. `slotted/` is about single slots, `ending/` about ends by others
than the holder, `presence/` about clients that are gone. `waiters.py` wakes long polls.
`sweeper.py` ends due leases and tickets and grants what becomes possible with time,
`capacity_retry.py` retries tickets when the ledger has changed; both use `sweeps.py`. `counters.py`
counts for metrics, `ended.py` says how long ended leases are kept, `lease_log.py` logs grants and
ends. `member_limits.py` lowers limits that follow the members of groups of reporters.
May import: `batch`, `feed`, `access`, the root of `service`, `store`, `core`.
"""
