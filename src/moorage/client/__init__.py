"""What runs on other machines: talks to a Moorage server over HTTP.

`transport.py` carries requests and tells failures apart, `decoding.py` turns answers into the
dataclasses of `wire`, `watch.py` follows every change, `ledger.py` claims, explains and describes
providers. Standard library only; may import: `wire`, never the server.
"""
