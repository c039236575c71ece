"""Where things fit: providers, inventories, allocations, and the search over them.

`model.py` defines the values, `facts.py` what a decision may read and change, `capacity.py` THE
capacity rule, `withholding.py` what is closed below a provider, `draining.py` what operators close,
`managed.py` which inventories follow an agent. `providers.py`, `inventory.py`,
`traits_aggregates.py`, `vocabulary.py`, `allocations.py`, `claims.py`, `reshaper.py` (one request),
`bulk.py` and `reported.py` decide. `reshaping/` plans changes of shape, `reshape_records.py` keeps
what was done. `import_mark.py` decides whether another ledger may be imported and who may use this
one meanwhile, `imported_rows.py` takes its rows over.
`compact_inventories.py` stores inventories compactly. `requests.py` defines queries; `search/`
answers them. May import: the rest of `core` outside its rooms.
"""
