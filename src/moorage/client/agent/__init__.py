"""The agent of a machine: prepares its huge pages and reports what it really has.

Start with `run.py`, `moorage agent run` from end to end. `protocol.py` decides what to send, from
answers and observations, without input and output; `preparation.py` does the work, one bounded step
at a time, on the pools in `hugepages.py`, which are files of `kernel_files.py`. `loop.py` runs
both, in the threads of `background.py`; `backoff.py` has the delays after failures. `api.py` sends
requests, `api_types.py` defines them, `plan.py` has the plan that goes with a report. `identity.py`
has the ids of the agent and of the boot; `consumers.py` finds what runs. `wait.py` is `moorage
agent wait`, for local starters. `options.py` is the table of both commands, `arguments.py`
interprets what they share, `commands.py` calls them.

Part of the single file: runs on Python 3.9; standard library only. May import: the transport,
`client/run`, and `systemd` for its notifications.
"""
