"""The API of a Kubernetes cluster, as far as governors need it: `api.py` sends requests.

May import: its siblings in `integrations`, `client`.
"""
