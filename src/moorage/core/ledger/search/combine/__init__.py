"""Combinations: which providers of one tree serve which group of a query.

`combiner.py` prepares the choices of each group, `walk.py` visits their combinations depth first,
`matching.py` detects early that no combination is left. May import: the rest of the search except
its callers.
"""
