"""One file per command of `moorage`.

`serve.py`, `config.py`, `db.py`, `token.py`, `audit.py`, `watch.py`, `explain.py`, `pool/`,
`apply.py`, `simulate.py`, `lease.py` with `lease_why.py` and `lease_revoke.py`, `fleet.py`,
`provider.py` and `consumer.py` about the ledger, `top/`, which draws on the whole screen,
`agent.py` with `agent_group.py`, `group.py` about groups of reporters with `report.py` about what
is wrong there, `ironic/`, which has `moorage gate` and `moorage ironic report`, too, and `metal3/`;
`run.py` has the commands of the single file, see `client/main.py`. May import: `support`,
`integrations`, `client`, `core`, `wire`.
"""
