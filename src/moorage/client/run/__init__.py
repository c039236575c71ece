"""Commands that need a lease: `moorage run`, handle files, functions for bash.

Start with `run.py`: `moorage run` from end to end. `lease/` acquires, renews and releases the
lease, `process/` runs the command. `handles/` stores leases in files, under `locks.py`; `shell.py`
prints code for bash, with `client.sh` and `trap.sh`. `lease_proxy.py` is the Python in it, with
`lease_proxy_exchange.py`, which sends its requests, and `lease_proxy_files.py`, which keeps names.
`parse.py` and `durations.py` parse the command line by the tables in `options.py` and
`variables.py`, and `labels.py` finds what describes the caller. `progress.py` shows the progress on
the terminal (`terminal.py`, `printing.py`), `exit_codes.py` has the exit codes and reports errors
as JSON. `api_types.py` defines requests and responses, `clock.py` a clock without jumps,
`private_file.py` replaces files with secrets.

Part of the single file that `make zipapp` builds, see `client/main.py`.

Runs on Python 3.9; standard library only. May import the transport, and nothing else.
"""
