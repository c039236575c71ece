"""Who may call, and who did what.

`tokens.py` makes, rotates, revokes and recognises tokens; `roles.py` says what a role may do;
`audit.py` writes and lists audit rows. May import: `batch`, `feed`, the root of `service`, `store`,
`core`.
"""
