"""What operators do with tickets of a line.

`moving.py` changes their places, `forcing.py` lets them be granted over the limit, `clearing.py`
ends all that an owner has. May import: the root of `core/admission`, the root of `core`.
"""
