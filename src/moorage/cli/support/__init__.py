"""What commands share.

* Where to: `command.py` finds out which server or database a command means, `credentials.py` with
  which token, `local_server.py` finds the server of a local database. `backend.py` carries out
  administration at that server, or in the database itself.
* Input: `options.py`, `durations.py`, `environment.py`, `completion.py`; `pool_files.py` reads
  files of pools, `jobs.py` jobs to simulate.
* Output: `output.py` prints, `pool_text.py` writes properties of pools, `simulate_chart.py` draws
  with `svg.py`.

May import everything but faces.
"""
