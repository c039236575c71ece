"""Measures how long a ledger takes to move in from OpenStack Placement, and out again.

`__main__.py` is the measurement, `filling.py` the original's database.
"""
