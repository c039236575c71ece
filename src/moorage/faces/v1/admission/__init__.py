"""Handlers of admission.

`pools.py` and `leases.py`. May import: the root of `faces/v1`, `service`, `core`, `wire`.
"""
