"""OpenStack Ironic: which requests start work on a node, and which nodes are busy.

`states.py` has Ironic's provision states and verbs, `provision_request.py` recognises requests for
a provision state in all their spellings, `rules.py` says which units a node needs. `nodes.py` reads
nodes, `reconcile.py` compares them with leases.
`wishes.py` has what nodes wish for, `starting.py` sends what was granted, and `refusals.py` says
what the answer means. `governor.py` starts what nodes wish for and counts all other work,
`rollout.py` works on listed nodes, a few at once. `clients.py` says how clients wait at
`gate/`, the proxy before Ironic's API, and `durations.py` how long work lasts.
`report/` keeps the ledger as Ironic's nodes are.
May import: `provisioning`, `client`, `wire`.
"""
