"""OpenStack Ironic: which requests start work on a node, and which nodes are busy.

`states.py` has Ironic's provision states and verbs, `provision_request.py` recognises requests for
a provision state in all their spellings. `nodes.py` reads nodes, `rules.py` says which units they
need, `clients.py` how clients wait; `reconcile.py` compares nodes and leases. `gate/` is a proxy
before Ironic's API.
May import: `provisioning`, `client`, `wire`.
"""
