"""Converts values of the service to those of the native API, and back.

`queries.py` (candidate queries), `pools.py`, `slots.py`, `leases.py`, `fleet.py`, `tokens.py`,
`audit.py` and `changes.py` (the change feed); `encoding.py` encodes times and durations,
`bounds.py` checks input. Used by `faces/v1` and by commands that work without a server. May import:
the rest of `service`, `core`, `wire`.
"""
