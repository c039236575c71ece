"""The gate: a reverse proxy before Ironic's REST API that holds back what makes a node busy.

`app.py` has the way of one request: `heads.py` refuses what is ambiguous, `passing.py` streams
what is not decided, `deciding.py` takes the steps of a request that needs a unit. `watch.py` passes
over all nodes meanwhile. `process.py` starts and stops everything.

`upstream.py` sends requests to Ironic, `answers.py` has the gate's own answers; `spool.py` keeps a
body until it is forwarded, `units.py` gets a host its unit. `listening.py` has the sockets,
`meters.py` the metrics, `probe.py` the checks of `moorage gate check`.
May import: the rest of `integrations`, `client`, `wire`.
"""
