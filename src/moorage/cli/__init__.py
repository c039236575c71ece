"""The command `moorage`: parses options, prints answers, chooses exit codes; decides nothing.

`main.py` is the door. `serving.py`, `tokens.py`, `database.py`, `following.py`, `explaining.py`,
`settings.py`, `pools.py`, `leases.py`, `top.py`, `applying.py` and `simulating.py` hold the
commands, `running.py` hands over to `client/run/`, `administration.py` carries the others out at a
running server or in the database, `beside.py` finds the server of our own database and
`credentials.py` the tokens to ask with, `pool_files.py` reads files of pools, `workloads.py` jobs
to rehearse, `durations.py` says how long, `environment.py` which variables there are,
`rehearsal_chart.py` draws with `svg.py`, `output.py` prints. May import everything.
"""
