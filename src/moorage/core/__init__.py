"""The rules. Pure: no I/O, no clock, no randomness, no logging. Facts in, changes out.

`ledger/` decides where something fits, `admission/` what may start now, `fleet/` what machines
really have. Shared modules: `ids.py` and `clock.py` define types, `service_time.py` the service's
own time, `errors.py` the one Error and its codes, `limits.py` every bound, `restart.py` how a
decision asks for more. `texts.py` defines which characters names may have, `labels.py` valid
labels, `wishes.py` which of them a request asks for, `wildcards.py` what `PREFIX/*` in a list
matches; `pool_values.py` has the values of fair shares and of adaptive limits; `durations.py`
parses Go's durations; `counting.py` formats counts and spans in messages, `ages.py` ages.
May import: the standard library, msgspec, numpy, `wire`.
"""
