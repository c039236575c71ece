"""Moorage's own API at `/v1`.

`app.py` is the door: address, token, role, input, errors. `routes.py` joins the tables of the
handlers in `ledger/`, `admission/` and `admin/`, and of `watch.py`, which follows all changes.
`routing.py` says what a route is and what a handler gets, `roles.py` what callers may do.
`decoding.py` turns input into the dataclasses of `wire`; `streaming.py` sends endless responses.
`problems.py` shapes every refusal (RFC 9457), `openapi.py` describes the API. May import:
`faces.web`, `service`, `core`, `wire`.
"""
