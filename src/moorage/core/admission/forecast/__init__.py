"""Forecasts: why a ticket waits, behind which others, for how long, and the effect of a limit.

`why.py` gives the reason, in which `holders.py` names who holds the units, `queue_order.py` the
tickets ahead, `eta.py` estimates the wait, and `simulate.py` runs jobs against a pool with the
rules of admission; `past.py` has what really happened. `statistics.py` computes the percentiles and
rates of all of them. Nothing here decides.
May import: the rest of `core/admission` except the other protocols.
"""
