"""The command that runs with a lease.

`child.py` starts and ends it, `descendants.py` finds what it has started; `signals.py` catches what
is sent to us, `job_control.py` stops and continues the command together with us. May import: the
root of `client/run`.
"""
