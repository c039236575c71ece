"""Access control and audit.

`tokens.py` creates, rotates, revokes and validates tokens, and notes their uses; `token.py` defines
one token; `sessions.py` has the sessions of the dashboard, `sign_in_links.py` the one-time links
that begin one, `sign_in_attempts.py` limits attempts; `roles.py` defines the rights of roles;
`audit.py` writes and lists audit rows. May import: `batch`, `feed`, the root of `service`, `store`,
`core`.
"""
