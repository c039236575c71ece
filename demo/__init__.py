"""A living example: a server, a fleet with agents, and jobs that have a past; all from one seed.

`__main__.py` is the command, and `stopping.py` what Ctrl-C does in it. `example.py` goes through
the phases: `past.py` lets an hour of jobs pass in seconds, `serving.py` starts a server with that
ledger (`server_process.py` ends when the example does), `fleet.py` builds the fleet and keeps
agents alive, `jobs.py` lets jobs ask, wait, run and end. `setting.py` names everything;
`arrivals.py` says which job comes when. `asking.py` sends requests: all that the example does, it
asks of the native API.
"""
