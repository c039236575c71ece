"""Use cases of admission: pools, leases and waiting lines.

`service.py` is the interface for faces. `pool_cases.py` and `lease_cases.py` are the requests that
change something, `queries.py` those that read, `key_ranges.py` the keys that have a prefix;
`views.py` has their results, `positions.py` the positions of tickets in line. `slots.py` is the
interface for single slots, which `slot_cases.py` changes. `waiters.py` wakes long polls.
`sweeper.py` ends due leases and tickets and grants what becomes possible with time,
`capacity_retry.py` retries tickets when the ledger has changed; both use `sweeps.py`. `counters.py`
counts for metrics, `ended.py` says how long ended leases are kept. `member_limits.py` lowers limits
that follow the members of groups of reporters. May import: `batch`, `feed`, `access`, the root of
`service`, `store`, `core`.
"""
