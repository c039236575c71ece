"""Access control and audit.

`tokens.py` creates, rotates, revokes and validates tokens; `token.py` defines one token;
`token_cache.py` keeps valid ones in
memory, `token_uses.py` when they were last used; `sessions.py` has the sessions of the dashboard,
`sign_in_attempts.py` limits attempts to begin one; `roles.py` defines the rights of roles;
`audit.py` writes and lists audit rows. May import: `batch`, `feed`, the root of `service`, `store`,
`core`.
"""
