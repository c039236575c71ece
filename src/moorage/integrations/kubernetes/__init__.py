"""The API of a Kubernetes cluster, as far as governors need it.

`api.py` sends requests, `mirror.py` keeps a copy of a list, `connection.py` finds the credentials,
`names.py` says which names are valid.
May import: its siblings in `integrations`, `client`.
"""
