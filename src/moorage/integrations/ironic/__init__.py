"""OpenStack Ironic: which requests start work on a node, and which nodes are busy.

`states.py` has Ironic's provision states and verbs.
May import: `provisioning`, `client`, `wire`.
"""
