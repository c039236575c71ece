"""Audits the ledger against Nova and Ironic: what is held by nobody, twice, or not as it should be.

`audit.py` has the steps: `survey.py` says cheaply who is suspect, `rounds.py` and `node_looks.py`
look at them again, until two looks in a row agree; `state_file.py` remembers which hosts are
surveyed, `plan_file.py` writes what can be healed, `healing.py` makes a reshape plan of it. The
rules take the facts of both sides and have no I/O: `consumer_rules.py`, `provider_rules.py` and
`node_rules.py`, with `shapes.py` for what a flavor asks for. `findings.py` has the codes,
`facts.py` what Nova says, `ledger_view.py` what the ledger shows. `asking.py` asks Nova, with the
patience of `pacing.py`, over `connection.py`; `ledger_api.py` reads the ledger. `ports.py` says
what an audit needs of both, `together.py` does the same for many. May import: `ironic`,
`openstack`, `placement`, `provisioning`, `client`, `wire`.
"""
