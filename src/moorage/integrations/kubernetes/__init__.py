"""The API of a Kubernetes cluster, as far as governors need it.

`api.py` sends requests, `mirror.py` keeps a copy of a list, `connection.py` finds the credentials,
`denials.py` tells a missing right from one that is not known yet, `names.py` says which names are
valid.
May import: its siblings in `integrations`, `client`.
"""
