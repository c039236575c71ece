"""A lease, from request to release.

`acquire.py` gets it or says why not, `waiting.py` waits for that; `idempotency_keys.py` makes the
request repeatable, `nesting.py` finds a lease around us. `renewer.py` keeps it, `lease_clock.py`
computes until when it is ours, `watching.py` acts if it is lost. `api.py` calls the server. May
import: the root of `client/run`, `process`, the transport.
"""
