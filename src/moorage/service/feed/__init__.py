"""Follows commits of this process and of its peers.

Start with `peer_changes.py`: it reads the change rows of peers, once for all, and hands every batch
to the index and the followers. `catalog_index.py` keeps the catalog of providers up to date,
`catalog_copies.py` builds new copies of it, `saved_catalog.py` keeps one in a file for the next
start; `followers.py` notifies the components that follow a room. `change_rows.py` reads change rows
as whole batches. `watch.py` reads them for clients. `import_mark.py` knows whether a ledger is
imported. `bell.py` wakes tasks that wait for changes,
`single_flight.py` coalesces concurrent reads. May import: the root of `service`, `store`, `core`.
"""
