"""Boskos for its own clients: boskosctl, janitor, reaper, mason and CI, as they are.

`app.py` is the door, `handlers.py` has one function per call, `responses.py` writes the responses,
byte for byte. May import: the service, the core and `faces/golang/`; no other face.
"""
