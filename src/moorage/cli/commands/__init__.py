"""One file per command of `moorage`.

`serve.py`, `config.py`, `db.py`, `token.py`, `audit.py`, `watch.py`, `explain.py`, `pool.py`,
`apply.py`, `simulate.py`, `lease.py`, `top.py`; `run.py` calls `client/run`. May import: `support`,
`client`, `core`, `wire`.
"""
