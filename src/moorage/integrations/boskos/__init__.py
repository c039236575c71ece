"""Boskos' custom resources, for moving from Boskos and back.

`objects.py` turns objects of Kubernetes into resources and back, `files.py` reads them from a file,
`cluster.py` from a cluster. May import: `integrations/kubernetes`, `wire`.
"""
