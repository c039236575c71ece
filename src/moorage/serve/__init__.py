"""The server process: the one place where everything is joined.

Start at `lifecycle.py`: it opens, listens, announces itself and stops; `signals.py` says when.
`compose.py` joins the service and the faces, `app.py` dispatches requests to them, `boskos.py` is
the second address, for Boskos' clients. `http/` accepts and guards connections. `files.py` lets the
command line find the server. `exposure.py` warns of dangerous settings, `garbage.py` schedules
garbage collection. `logs.py`, `metrics.py` and `pool_metrics.py` report what happens. May import:
`faces`, `config`, `service` and below.
"""
