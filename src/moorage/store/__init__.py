"""The only SQL. Colourless: functions here yield statements and turn rows into facts.

`api.py` is the port: statements, plans, and what an engine does with them. `ledger.py` gathers the
ledger's plans: `load.py` turns keys into facts, `save.py` changes into rows, `log.py` keeps the
change rows, `reads.py` looks, `windows.py` goes through many rows piece by piece; `rows.py` knows
the columns, `check.py` whether all is consistent. `admission.py` gathers admission's plans, its
files are called alike. `access.py` is about tokens. `open.py` alone
picks the engine: `sqlite.py` runs statements on the file of `sqlite_file.py`, `sqlite_copy.py`
backs it up and restores it, `migrate.py` brings it up to date; `postgres.py` runs them on the
connections of `postgres_link.py`, long reads as in `postgres_aside.py`; `postgres_commit.py` asks
after a lost commit, `postgres_migrate.py` brings that database up to date. The statements stand in
`queries/<engine>/<room>.sql` and are read by `sql.py`; the tables in `schema/<engine>/`. May
import: `core`.
"""
