"""The Boskos API for its unmodified clients: boskosctl, janitor, reaper, mason and CI.

`app.py` is the entry point, `handlers.py` has one function per call, with byte-exact
responses. May import: the service, the core and `faces/golang/`; no other face.
"""
