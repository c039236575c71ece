"""Webhooks: posts to configured addresses that a lease was granted or has ended.

`hook_files.py` reads a file of hooks, `hooks.py` says which lease concerns a hook and what it is
sent, `templates.py` fills in names; `secret_values.py` reads secrets, `signatures.py` signs.
`posting.py` sends one post and judges the answer. `following.py` follows the feed for one hook from
its place in `cursor_files.py`, and keeps what it gives up by `given_up.py`; `attending.py` waits in
place of tickets without a process. Standard library only. May import: `client`, `wire`.
"""
