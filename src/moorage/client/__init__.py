"""What runs on other machines: talks to a Moorage server over HTTP.

`ledger.py` and `admission.py` are the native API, typed: start there. `watch.py` follows every
change; `transport.py` carries requests and tells failures apart, `decoding.py` turns answers into
the dataclasses of `wire`; `run/` carries a command that needs a lease. Standard library only; may
import: `wire`, never the server.
"""
