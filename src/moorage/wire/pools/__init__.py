"""What is in pools: resources of Boskos, reports, the past.

`boskos.py` is about resources of Boskos, `reports.py` about what is in a pool and how its leases
have ended, `past.py` about its counts over time and rehearsals of other limits, `templates.py`
about what makes pools on demand. Pools themselves stand with leases. May import: `wire`.
"""
