"""What was committed, by this process and by others, for everybody who follows it.

`index.py` keeps the catalog of providers up to date, `catalog_copies.py` builds new copies of it.
`watch.py` reads change rows for clients, `peer_changes.py` reads what other processes changed in
pools and leases. `bell.py` wakes those who wait for news, `single_flight.py` lets callers that wait
at the same time share one query. May import: the root of `service`, `store`, `core`.
"""
