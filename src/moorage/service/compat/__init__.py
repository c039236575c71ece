"""Use cases for clients of other services: Boskos and the lease proxy.

`boskos.py` is the interface for its face, `boskos_cases.py` has its requests,
`boskos_strict_cases.py` those of strict mode, `boskos_config.py` its configuration file;
`lease_proxy.py` is the lease proxy. May import: `admission`, `batch`, `feed`, `access`, the root of
`service`, `store`, `core`.
"""
