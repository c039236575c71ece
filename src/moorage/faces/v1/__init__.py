"""Moorage's own API at `/v1`, so far its administration: tokens, backup, check.

`app.py` is the door: request id, who is calling, errors. `tokens.py` and `database.py` hold the
handlers, `problems.py` shapes every refusal (RFC 9457). May import: `faces.web`, `service`, `core`.
"""
