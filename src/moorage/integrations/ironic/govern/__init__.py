"""`moorage ironic govern`: starts what nodes wish for, and counts all other work.

`governor.py` makes one pass after the other, `notes.py` writes onto the nodes why they wait,
`metrics.py` shows it to Prometheus.
May import: its siblings in `ironic`, `provisioning`, `client`, `wire`.
"""
