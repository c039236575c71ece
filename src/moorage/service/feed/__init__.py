"""Follows commits of this process and of its peers.

`index.py` keeps the catalog of providers up to date, `catalog_copies.py` builds new copies of it.
`watch.py` reads change rows for clients, `peer_changes.py` reads changes of pools and leases by
peers. `bell.py` wakes tasks that wait for changes, `single_flight.py` coalesces concurrent reads.
May import: the root of `service`, `store`, `core`.
"""
