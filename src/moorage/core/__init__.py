"""The rules. Pure: no I/O, no clock, no randomness, no logging. Facts in, changes out.

`ids.py` and `clock.py` hold the typed words every room shares, `errors.py` the one Error and its
codes, `limits.py` every bound. `ledger/` answers where something fits. May import: the standard
library, msgspec, numpy.
"""
