"""The query strings of the Placement API, also for the native API, which explains them.

`queries.py` parses them with `grammar.py`; `parameters.py` checks their parameters, and
`schema_errors.py` explains errors as the original does. `uuids.py` defines what counts as a UUID,
`refusals.py` the refusals, `pasted.py` finds the query string in what people paste. May import:
`faces.web`, `core`.
"""
