"""The pages: each file gathers what its templates show, and has the actions of its buttons.

`overview.py` is the first one. `pools.py` has pools, `leases.py` leases and tickets, `fit.py` where
something would fit, `audit.py` who did what, `changes.py` the stream of changes.
"""
