"""Handlers of admission.

`pools.py`, `contents.py` for what is in a pool, `past.py` for what was, `slots.py`, `leases.py`,
`owners.py` for all that an owner has, and `lines.py` for what operators do with tickets. May
import: the root of `faces/v1`, `service`, `core`, `wire`.
"""
