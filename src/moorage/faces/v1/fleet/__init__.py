"""Handlers of the fleet.

`agents.py` is for operators and readers, `machines.py` for the agents themselves, `groups.py` for
groups of agents, `reporters.py` for groups of reporters, `reports.py` for their reports.
May import: the root of `faces/v1`, `service`, `core`, `wire`.
"""
