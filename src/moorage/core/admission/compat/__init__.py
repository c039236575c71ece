"""Decisions of other services' protocols: Boskos, and the lease proxy of CI jobs.

`boskos.py` acquires as Boskos does, `boskos_strict.py` with all of its quirks. `slots_by_name.py`
has the operations of Boskos' clients on slots by name. `boskos_import.py` takes over the resources
of Boskos. `lease_proxy.py` has the leases of the lease proxy. May import: the rest of
`core/admission` except forecasts.
"""
