"""`moorage audit`: the audit log, and comparisons of the ledger with Nova and Ironic.

`trail.py` prints the audit log, `clouds.py` has `moorage audit nova` and `moorage audit ironic`,
`report.py` prints what they find. May import: `support`, `integrations`, `client`, `wire`.
"""

from moorage.cli.commands.audit.trail import audit as group

__all__ = ["group"]
