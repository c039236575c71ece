"""A double of a Kubernetes API server: one light process, real HTTP, faults on demand.

`server.py` starts it and speaks HTTP, `requests.py` reads requests, `kinds.py` has the resources,
`discovery.py` describes them, `host_schema.py` the hosts of metal3. `reads.py` answers lists and
watches with `selectors.py` and `tables.py`. `writes.py` changes objects: `decoding.py` reads them,
`schemas.py` checks custom ones, with `patches.py`, `applying.py` (server-side apply) and
`admission.py` (webhooks). `storage.py` has the objects and their history, `access.py` who may do
what, `faults.py` what goes wrong, `status.py` the refusals.

It has no controllers: owned objects and the contents of namespaces are not collected. Only custom
resources have schemas. Events of the core and of `events.k8s.io` are apart; in Kubernetes they are
the same. `tests/kubernetes/conversation/` compares it with a real API server.
"""
