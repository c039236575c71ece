"""Where does it fit: providers, inventories, allocations, and the search over them.

`model.py` holds the values, `facts.py` what a decision may read and what it may change,
`capacity.py` THE capacity rule. `providers.py`, `inventory.py`, `tags.py`, `vocabulary.py`,
`allocations.py`, `claims.py`, `reshape.py` and `bulk.py` decide; `requests.py` is the language of
queries and `search/` answers them. May import: the rest of `core` outside its rooms.
"""
