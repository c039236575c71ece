"""Handlers of admission.

`pools.py`, `slots.py` and `leases.py`. May import: the root of `faces/v1`, `service`, `core`,
`wire`.
"""
