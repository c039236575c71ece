"""Governs other systems from the outside, with the client: they know nothing of Moorage.

`provisioning/` has the one rule of how long a host occupies a unit; `ironic/` and `metal3/` have
what is special about OpenStack Ironic and about metal3, `kubernetes/` speaks to clusters.
`placement/` moves a ledger from OpenStack Placement, and back; `nova/` audits it against Nova and
Ironic; `openstack/` is the way to a cloud for both; `boskos/` has the resources of Boskos;
`webhooks/` posts what happens to leases.
`native_api.py` is the native API for asyncio, `lease_api.py` that of leases, `report_api.py` that
of reporters, `clock.py` the time, `bounded.py` runs many requests, a few at a time.
`connections.py` opens connections to other systems, `answers.py` reads what they answer, with
limits; `connection_errors.py` says why a connection failed, `no_retry.py` prevents a second
sending, `rereading.py` follows files that change, such as tokens, `pem_files.py` reads
certificates. `sockets.py` opens sockets that listen, `web_server.py` serves applications,
`doorkeeper.py` limits their connections, and `metrics_server.py` serves metrics and probes. May
import: `client`, `wire`, never the server.
"""
