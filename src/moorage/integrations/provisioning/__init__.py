"""The rule of when a host that works on something occupies a unit of a pool, and until when.

`unit_release.py` says which evidence releases a unit, `occupation.py` which hosts are to have one:
both are pure, without I/O and clock. `hosts.py`
says how the leases of a host are named; `host_leases.py` asks for units, `work_steps.py` keeps the
steps of the work in the records of leases, `request_steps.py` sends a request by them. `start.py`
has what hosts wait to start, `line.py` waits for their units, `host_starter.py` starts them;
`deadlock.py` finds hosts that wait for each other. `reconcile.py` compares hosts with their leases
in each pass of a governor. `passes.py` says what happens if a pass fails, `pass_metrics.py` shows
to Prometheus what they have seen. `notes.py` says when a host is to say why it waits. `rules.py`
says which units a host needs, by a file. `known_hosts.py` says which hosts can have been deleted,
`pools.py` checks that pools can hold the units.
May import: `client`, `wire`.
"""
