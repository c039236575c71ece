"""Access tokens and audit rows.

`tokens.py` stores tokens by their SHA-256; `audit.py` stores who did what. May import: the root of
`store`, `core`.
"""
