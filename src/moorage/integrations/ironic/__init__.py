"""OpenStack Ironic: which requests start work on a node, and which nodes are busy.

`states.py` has Ironic's provision states and verbs, `provision_request.py` recognises requests for
a provision state in all their spellings.
May import: `provisioning`, `client`, `wire`.
"""
