"""The gate: a reverse proxy before Ironic's REST API that holds back what makes a node busy.

`app.py` takes each request: `heads.py` refuses what is ambiguous, `passing.py` streams what is not
decided, `deciding.py` takes the steps of a request that needs a unit. Meanwhile `watch.py` passes
over all nodes. `process.py` starts and stops everything.

`upstream.py` sends requests to Ironic, `answers.py` has the gate's own answers in the form of
Ironic's errors. `spool.py` keeps a body until it is forwarded, `units.py` gets a host its unit,
`turns.py` estimates when it comes.
`listening.py` opens the sockets, or takes over those that systemd passes. `metrics.py` has the
metrics, `probe.py` the checks of `moorage gate check`.
May import: the rest of `integrations`, `client`, `wire`.
"""
