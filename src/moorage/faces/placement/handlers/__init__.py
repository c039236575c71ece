"""One file per resource: its handlers.

`root.py`, `providers.py`, `inventories.py`, `traits.py`, `aggregates.py`, `usages.py`,
`resource_classes.py`, `allocations.py`, `reshaper.py`; `candidates.py` answers searches.
May import: the rest of the face, `faces.web`, `service`, `core`.
"""
