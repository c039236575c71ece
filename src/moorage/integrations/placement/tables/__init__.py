"""Makes rows of the original's tables, and finds what is odd in them.

`providers.py` reads providers with all that they have, `consumers.py` consumers with their
allocations. May import: what `placement` has for
both, `client`, `wire`.
"""
