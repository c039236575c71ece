"""Commands that need a lease: `moorage run`, handle files, functions for bash.

Start with `run.py`: `moorage run` from end to end. `lease/` gets, keeps and gives back the lease,
`process/` runs the command. `handles/` keeps leases in files, under `locks.py`; `shell.py` prints
code for bash, with `client.sh` and `trap.sh`, and `lease_proxy.py` is the Python in it. `parse.py`
and `durations.py` read the command line, by the tables of `options.py` and `variables.py`.
`progress.py` shows what happens on the terminal (`terminal.py`, `printing.py`), `failures.py` says
in JSON why something failed. `api_types.py` are requests and responses, `clock.py` never jumps.
`main.py` is the command line of the single file that `make zipapp` builds from this package and
`client/transport.py`.

Runs on Python 3.9; standard library only. May import the transport, and nothing else.
"""
