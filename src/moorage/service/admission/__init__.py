"""Use cases of admission: pools, leases and waiting lines.

`service.py` is what faces call. `pool_cases.py` and `lease_cases.py` are the requests that change
something, `queries.py` those that read; `views.py` is what they return, `positions.py` where
tickets stand in line. `waiters.py` wakes long polls. `sweeper.py` ends what is over and grants when
time permits, `capacity_retry.py` tries tickets again when the ledger has changed; both use
`sweeps.py`. `counters.py` counts for metrics. May import: `batch`, `feed`, `access`, the root of
`service`, `store`, `core`.
"""
