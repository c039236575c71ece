"""A living example: a server, a fleet, agents and jobs, all from one seed.

`__main__.py` is the command. `setting.py` names everything, `fleet.py` builds the fleet and keeps
agents alive, `jobs.py` lets jobs ask, wait, run and end. They use only the public API.
"""
