"""`moorage ironic rollout`: a wave over listed nodes, a few at once.

`wave.py` says from readings how far each node is, `rollout.py` makes one pass after the other,
`report.py` sums up.
May import: its siblings in `ironic`, `provisioning`, `client`, `wire`.
"""
