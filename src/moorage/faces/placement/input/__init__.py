"""Bodies: parsed, checked, and refused with the messages of the original.

`bodies.py` decodes bodies into the types of `schemas.py`; `json_schemas.py` has what explains
errors. Query strings are in `faces/query_strings/`. May import: `request` of the face,
`faces.query_strings`, `faces.web`, `core`.
"""
