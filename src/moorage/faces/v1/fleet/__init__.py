"""Handlers of the fleet.

`agents.py`, for operators and for the agents themselves; `groups.py` for groups of agents,
`reporters.py` for groups of reporters and their reports.
May import: the root of `faces/v1`, `service`, `core`, `wire`.
"""
