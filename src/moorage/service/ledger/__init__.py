"""Use cases of the ledger.

`use_cases.py` changes providers, inventories and allocations; `claims.py` chooses providers and
allocates from them in one request; `bulk.py` upserts many providers; `queries.py` reads rows. May
import: `batch`, `feed`, `access`, the root of `service`, `store`, `core`.
"""
