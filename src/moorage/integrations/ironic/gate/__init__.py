"""The gate: a reverse proxy before Ironic's REST API that holds back what makes a node busy.

`app.py` has the way of one request: `heads.py` refuses what is ambiguous, `passing.py` streams
what is not decided, `deciding.py` takes the steps of a request that needs a unit. `watch.py` passes
over all nodes meanwhile. `process.py` starts and stops everything.
May import: the rest of `integrations`, `client`, `wire`.
"""
