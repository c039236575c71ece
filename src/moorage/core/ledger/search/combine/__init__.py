"""Combinations: which providers of one tree serve which group of a query.

`combiner.py` prepares the choices of each group (`choices.py`) in an order, `walk.py`
visits their combinations depth first. `look_ahead.py` detects early that no
combination is left; `dead_ends.py` remembers where none was. May import: the rest of the search
except its callers.
"""
