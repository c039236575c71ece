"""Provisioning limits for metal3: BareMetalHosts start when they have their units.

`hosts.py` says what a BareMetalHost does and what it waits to start, as the baremetal-operator
(BMO) reads it, `status.py` has its status, also if it was moved, `failures.py` says what has
failed, and when it may try again, `resting.py` whether nothing works on it meanwhile, `holds.py`
what holds it, `rules.py` which units it needs, `cluster.py` which cluster it is of. `mirror.py`
follows all hosts; `governor.py` passes over them with `reconcile.py`, and starts them;
`changes.py` changes their pauses without waiting for one, and `requests.py` sends its requests to
Kubernetes. `explain.py` decides what people see of why hosts
wait: `notes.py` writes it on each host, `events.py` decides on events and creates them;
`admission_decision.py` says which writes pause a host, which `admission_webhook.py` serves;
`manifests/` has the documents for a cluster, which `install.py` puts together; `until_paused.py`
proves that new hosts are paused, `uninstall.py` leaves no host paused by us, `holding.py` holds
hosts for people, and `operator_limit.py` reads the limit that BMO has of its own. May import:
`integrations`, `client`, `wire`.
"""
