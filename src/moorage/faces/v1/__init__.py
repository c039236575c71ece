"""Moorage's own API at `/v1`.

`app.py` is the entry point: address, token, role, input, errors. `routes.py` joins the route tables
of the handlers in `ledger/`, `admission/`, `fleet/` and `admin/`, and of `watch.py`, the change
feed. `routing.py` defines what a route is and what its handler receives, `roles.py` what callers
may do. `decoding.py` turns input into the dataclasses of `wire`, `long_lists.py` cuts long bodies;
`answers.py` forms responses; `prompt.py` answers signs of life from memory, `in_process.py` calls
from inside the process. `problems.py` formats every error response (RFC 9457), `openapi.py`
describes the API, with `descriptions.py`.
May import: `faces.web`, `service`, `core`, `wire`.
"""
