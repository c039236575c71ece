"""The fleet: agents report what their machines have, operators say what they want.

Start with `service.py`, the operations that faces may call. `agent_cases.py` has the use case
behind every change of an agent, which the ledger follows in the same batch, and those of agents;
`plan_cases.py` has reports with a plan, of which `plan_bounds.py` refuses what is of others
or too much;
`policy_cases.py` has those of operators, `group_defaults.py` makes members follow their group;
`agent_audit.py` says what the audit trail keeps.
`directory.py` has all agents in memory, and counts of them; `queries.py` reads rows,
`not_offered.py` finds agents that offer less than a query needs.
`liveness_loop.py` remembers when agents were heard of, exchanges that with other processes and
finds silent agents, whose changes are in `liveness_cases.py`. `reporters.py` has the operations of
groups of reporters, `reporter_cases.py` their changes, of which `group_clearing.py` makes deletions
in the background, `report_bounds.py` how large a report may be.
May import: `batch`, `feed`, `access`, `ledger`, the root of `service`, `store`, `core`.
"""
