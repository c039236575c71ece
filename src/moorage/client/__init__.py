"""The client: runs on other machines and talks to a Moorage server over HTTP.

Start with `ledger.py` and `admission.py`, the typed native API. `watch.py` follows all changes;
`transport.py` sends requests and classifies failures, `decoding.py` converts answers to the
dataclasses of `wire`; `run/` runs commands that need a lease. Standard library only; may import:
`wire`, never the server.
"""
