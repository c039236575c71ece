"""Values of the service in the words of the native API, and back.

`queries.py` (candidate queries), `pools.py`, `leases.py`, `tokens.py`, `audit.py` and `changes.py`
(the change stream); `encoding.py` writes times and durations, `bounds.py` checks what callers say.
Used by `faces/v1` and by commands that work without a server. May import: the rest of `service`,
`core`, `wire`.
"""
