"""Bodies and query strings: parsed, checked, and refused with the messages of the original.

`bodies.py` decodes bodies into the types of `schemas.py`; `json_schemas.py` and `schema_errors.py`
explain errors. `queries.py` parses query strings with `grammar.py`; `parameters.py` checks their
parameters. `uuids.py` defines what counts as a UUID. May import: `problems` and `request` of the
face, `faces.web`, `core`.
"""
