"""The rules. Pure: no I/O, no clock, no randomness, no logging. Facts in, changes out.

`ids.py` and `clock.py` hold the typed words every room shares, `errors.py` the one Error and its
codes, `limits.py` every bound, `texts.py` which characters names may have, `wildcards.py` what
`PREFIX/*` in a list stands for. `ledger/` answers where something fits, `admission/` who may start
now. May import: the standard library, msgspec, numpy, and the words of the native API.
"""
