"""The client: runs on other machines and talks to a Moorage server over HTTP.

Start with `ledger.py`, `admission.py` with `slots.py`, `fleet.py` and `reporting.py`, the typed
native API.
`watch.py` follows all changes; `transport.py` sends requests and classifies failures, `decoding.py`
converts answers to the dataclasses of `wire`; `run/` runs commands that need a lease, `agent/`
reports what a machine has. `main.py` is the command line of both as a single file, from the table
in `commands.py`. Standard library only; may import: `wire`, never the server.
"""
