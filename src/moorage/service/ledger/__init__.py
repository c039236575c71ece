"""Use cases of the ledger.

`provider_cases.py` changes providers with their inventories, traits and aggregates,
`allocation_cases.py` allocations, `operator_cases.py` has what operators do with providers,
`vocabulary_cases.py` custom classes and traits. `claims.py` chooses providers and allocates from
them in one request; `bulk.py` upserts many providers, `reshapes.py` previews, commits and undoes
plans that change trees, `imports.py` takes over another ledger; `queries.py` reads rows;
`stock_metrics.py` adds up inventories for metrics. May import: `batch`, `feed`, `access`, the root
of `service`, `store`, `core`.
"""
