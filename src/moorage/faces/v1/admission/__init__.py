"""Handlers of admission.

`leases.py`, also for what operators do with tickets and for all that an owner has; `handing.py` for
leases that change hands or are kept for inspection; `pools.py` and what is in them, `templates.py`
for what makes them, `adaptive.py` for their adaptive limits, `shares.py` for their fair shares,
`past.py` for what was, `slots.py`, `boskos.py` for slots as resources of Boskos, `bookings.py` for
units that are kept on a calendar.
May import: the root of `faces/v1`, `service`, `core`, `wire`.
"""
