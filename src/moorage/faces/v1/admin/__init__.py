"""Handlers for administrators.

`tokens.py`, `database.py` (checks and backups), `audit.py`; `whoami.py` is for every caller. May
import: the root of `faces/v1`, `service`, `core`, `wire`.
"""
