"""Bodies and query strings: parsed, checked, and refused in the words of the original.

`bodies.py` reads bodies by the types of `schemas.py`; `json_schemas.py` and `schema_errors.py` say
what is wrong with one. `queries.py` reads query strings by `grammar.py`; `parameters.py` says what
is wrong with one. `uuids.py` says what counts as a UUID. May import: `problems` and `request` of
the face, `faces.web`, `core`.
"""
