"""The adaptive limit: a test of the outcomes of starts, which raises and cuts the limit of a pool.

`sequential_test.py` decides between two failure rates, `state.py` has the values, `rule.py` counts
an outcome and takes a step, `texts.py` says what it would do, for people. Pure: one outcome in, one
pool out. Source: docs/decisions/0062-adaptive-limits.md.
May import: `model.py`, `pacing.py`, `wire` and the root of `core`.
"""
