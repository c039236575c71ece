"""Forecasts: why a ticket waits, behind which others, for how long, and the effect of a limit.

`why.py` gives the reason, in which `holders.py` names who holds the units, and `booked.py` what
bookings forbid; `eta.py` orders the line and estimates the wait; `overstays.py` finds the lease
that a line waits behind for too long; `simulate.py` runs jobs, also those of the past, against a
pool with the rules of admission, and `cloud.py` is what throttles them there. `statistics.py`
computes the percentiles and rates of all of them, `effects.py` what a decision makes of leases and
tickets. Nothing here decides.
May import: the rest of `core/admission` except the other protocols.
"""
