"""Handlers of admission.

`pools.py`, `slots.py`, `leases.py`, and `lines.py` for what operators do with tickets. May import:
the root of `faces/v1`, `service`, `core`, `wire`.
"""
