"""What operators do with single tickets of a line.

`moving.py` changes their places, `forcing.py` lets them be granted over the limit. May import: the
root of `core/admission`, the root of `core`.
"""
