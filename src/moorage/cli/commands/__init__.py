"""One file per command of `moorage`.

`serve.py`, `config.py`, `db.py`, `token.py`, `signing_in/`, which has `moorage login` and `moorage
dashboard`, `watch.py`, `notify.py`, `explain.py`, `pool/`, `audit/` with `heal.py`, `apply.py`,
`simulate.py`, `lease.py` with `lease_hands.py`, `booking.py`, `find.py`, `fleet.py`, `usage.py`,
`provider/`, `consumer.py` and `reshape.py` with `reshape_plans.py` about the ledger, `top/`, which
draws on the whole screen, `agent.py` with `agent_group.py`, `group.py` about groups of reporters
and their reports, `ironic/`, which has `moorage gate` and `moorage ironic report`, too, `metal3/`,
and `moving/`, from other services and back, which has `moorage verify`, too; `run.py` has the
commands of the single file, see `client/main.py`. May import: `support`, `integrations`, `client`,
`core`, `wire`.
"""
