"""The server process, which connects all other parts.

Start at `lifecycle.py`: it opens the database, announces the server and stops it; `doors.py` has
the addresses that it listens on, `certificate.py` that of TLS, `signals.py` handles signals,
`supervision.py` feeds the watchdog of systemd, and tells it how the server is. `compose.py`
connects the service and the faces, `app.py` dispatches requests to them below the prefix in
`mount.py`; `front_door.py` leads browsers at `/` to the dashboard; `boskos.py` serves the second
address, for clients of Boskos. `http/` accepts and guards connections. `files.py` writes the files
by which the command line finds the server, `admin_token.py` creates the first token. `garbage.py`
schedules garbage collection. `logs.py` formats the log and `log_writer.py` writes it; `metrics.py`
reports what happens, and `openstack_metrics.py` inventories, for boards that know the names of
OpenStack.
May import: `faces`, `config`, `service` and below.
"""
