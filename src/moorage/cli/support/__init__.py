"""Code that commands share.

* Target: `command.py` determines the server or database of a command, `credentials.py` its token;
  `local_server.py` finds the server of a local database. `backend.py` carries out administration at
  that server, `database.py` in the database itself. `provisioning.py` has what all commands share
  that limit hosts, `moving.py` those that move a ledger; `ironic.py` opens Ironic and Moorage for
  those of them that limit nodes, `kubernetes.py` finds a cluster.
* Input: `options.py`, `settings.py`, `durations.py`, `environment.py`, `completion.py`; `ids.py`
  finds the id that begins with a text, `pool_files.py` reads files of pools, `documents.py` plans
  and evidence, `jobs.py` the jobs to simulate; `irreversible.py` asks before what cannot be undone,
  `backup_folder.py` keeps the newest backups.
* Output: `output.py` prints, `progress.py` how far a command is; `tables.py` draws lists for a
  terminal, which `terminal.py` measures; `views/` has what is printed about pools, leases, the
  fleet, rollouts and reports.

May import everything but faces.
"""
