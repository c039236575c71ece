"""Access control and audit.

`tokens.py` creates, rotates, revokes and validates tokens; `roles.py` defines the rights of roles;
`audit.py` writes and lists audit rows. May import: `batch`, `feed`, the root of `service`, `store`,
`core`.
"""
