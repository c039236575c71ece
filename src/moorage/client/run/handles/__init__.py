"""Leases kept in files, so that one step acquires and another releases.

`commands.py` carries out the commands, `file.py` is the file, `renewals.py` renews what is in it.
May import: `lease`, `process`, the root of `client/run`, the transport.
"""
