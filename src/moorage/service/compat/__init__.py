"""Use cases of other services' clients: Boskos and the lease proxy.

`boskos.py` is what its face calls, `boskos_cases.py` its requests, `boskos_config.py` its
configuration file; `lease_proxy.py` is the lease proxy. May import: `admission`, `batch`, `feed`,
`access`, the root of `service`, `store`, `core`.
"""
