"""A lease, from request to release.

`acquire.py` acquires it, `waiting.py` waits for the grant; `idempotency_keys.py` makes the request
repeatable, `nesting.py` detects the lease of an outer run. `renewer.py` renews it and gives it back
or keeps it for inspection, `lease_clock.py` computes until when it is valid, `watching.py` acts if
it is lost. `api.py` calls the server. May import: the root of `client/run`, `process`, the
transport.
"""
