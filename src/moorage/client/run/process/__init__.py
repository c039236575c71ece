"""The command that runs with a lease.

`child.py` starts and ends it, `descendants.py` finds the processes that it has started;
`signals.py` catches signals, `job_control.py` stops and continues the command together with this
process. `output.py` searches what it prints. `starters.py` notices that nobody needs this process
any more. May import: the root of `client/run`.
"""
