"""Access tokens and audit rows.

`tokens.py` stores tokens as their SHA-256, `sessions.py` sessions of the dashboard; `audit.py`
records who did what. May import: the root of
`store`, `core`.
"""
