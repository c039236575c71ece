"""Bookings: units of pools that are kept for somebody at a time, or closed.

`bookings.py` accepts and changes them, `profile.py` says what is spoken for at each moment,
`booked_pools.py` what that permits in one pass of `admit`, `waking.py` when to look at a pool
again. Start with `profile.py`, which has the rule.
May import: the rest of `core/admission` except `forecast` and the other protocols.
"""
