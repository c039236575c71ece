"""Leases stored in files, so that one step can acquire and another can release.

`commands.py` executes the commands, `acquiring.py` those that wait for a lease, `by_id.py` the
release of a lease that is in no file; `file.py` reads and writes the file, `renewals.py` renews its
leases, `giving_back.py` releases them. May import: `lease`, `process`, the root
of `client/run`, the transport.
"""
