"""Moorage's own API at `/v1`: what Placement has no words for, and Moorage's administration.

`app.py` is the door: address, token, role, input, errors. `routes.py` joins the tables of the
modules that hold the handlers (`tokens.py`, `database.py`, `audit.py`, `fleet.py`, `watch.py`,
`claims.py`, `explain.py`, `providers.py`, `pools.py`, `leases.py`); `questions.py` turns questions
into the ledger's, `lease_words.py` wishes for leases into admission's, within `bounds.py`;
`routing.py` says what a route is and what a handler is given. `decoding.py` turns input into the
dataclasses of `wire`, `encoding.py` values into them, `streaming.py` sends answers without an end,
`roles.py` says what callers are, `problems.py` shapes every refusal (RFC 9457), `openapi.py`
describes it all. May import: `faces.web`, `service`, `core`, `wire`.
"""
