"""The adaptive limit: a test of the outcomes of starts, which raises and cuts the limit of a pool.

`sequential_test.py` decides between two failure rates, `rule.py` counts an outcome and takes a
step, `texts.py` says what it would do, for people. Pure: one outcome in, one pool out.
Source: docs/decisions/0062-adaptive-limits.md.
May import: the values and the pacing of `core/admission`, `wire` and the root of `core`.
"""
