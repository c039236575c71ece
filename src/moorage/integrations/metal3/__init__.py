"""Provisioning limits for metal3: BareMetalHosts start when they have their units.

`hosts.py` says what a BareMetalHost does and what it waits to start, as the baremetal-operator
(BMO) reads it, `failures.py` what has failed, and when it may try again, `rules.py` which units a
host needs, `cluster.py` which cluster it is of. `mirror.py` follows all hosts; `governor.py` passes
over them with `reconcile.py`, and starts them; `requests.py` sends its requests to Kubernetes.
`explain.py` decides what people see of why hosts wait: `notes.py` writes it on each host,
`events.py` creates events about it; `metrics.py` shows it to Prometheus. `admission/`
decides which writes pause a host, `manifests/` has the documents for a cluster, which `install.py`
puts together; `uninstall.py` leaves no host paused by us.
May import: `integrations`, `client`, `wire`.
"""
