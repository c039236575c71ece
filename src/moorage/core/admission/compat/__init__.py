"""Decisions of other services' protocols: Boskos, and the lease proxy of CI jobs.

`boskos.py` acquires as Boskos does, `boskos_strict.py` with all of its quirks. `slots_by_name.py`
has the operations of Boskos' clients on slots by name, `lease_proxy.py` the leases of the lease
proxy. May import: the rest of `core/admission` except forecasts.
"""
