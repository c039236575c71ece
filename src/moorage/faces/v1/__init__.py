"""Moorage's own API at `/v1`.

`app.py` is the entry point: address, token, role, input, errors. The operations stand in
`wire/operations/`; `routes.py` joins them with their handlers in `ledger/`, `admission/`, `fleet/`,
`admin.py`, `acting.py`, for actions that are tried first and what takes them back, `finding.py`,
which looks in all of them, and `watch.py`, the change feed. `routing.py` defines what a route is
and what its handler receives; `authorization.py` checks what callers may do. `decoding.py` turns
input into the dataclasses of `wire`, `long_lists.py` cuts long bodies; `answers.py` forms
responses; `prompt.py` answers signs of life from memory, `in_process.py` calls from inside the
process. `problems.py` formats every error response (RFC 9457), `openapi.py` describes the API, with
`descriptions.py` and the recorded calls of `examples.json`. May import: `faces.web`, `service`,
`core`, `wire`.
"""
