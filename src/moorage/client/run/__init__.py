"""What carries a command that needs a lease: `moorage run`, handle files, shell functions.

`running.py` is `moorage run` from end to end: start there. `acquiring.py` gets a lease or says why
not, `waiting.py` waits for that, `keys.py` makes it repeatable, `nesting.py` finds a lease around
us. `keeping.py` renews the lease, `terms.py` computes until when it is ours, `watching.py` acts if
it is lost. `children.py` and `signals.py` are the command and what is sent to it, and
`descendants.py` finds what it has started; `terminal.py` and `job_control.py` let it use the
terminal, and stop it together with us; `notices.py` is what people are told meanwhile, and
`printing.py` how. `handling.py`, `handles.py` and `renewals.py` are leases kept in files, under
`locks.py`; `shell.py` prints code for bash, and `proxied.py` is the Python in it. `calls.py` and
`answers.py` speak the native API, `orders.py` and `durations.py` read what is asked for,
`failures.py` says in JSON why something has failed; `options.py` is the table of all options,
`variables.py` that of variables, `main.py` the command line of the single file that `make zipapp`
builds from this package and `client/transport.py`.

Runs on Python 3.9; standard library only. May import the transport, and nothing else.
"""
