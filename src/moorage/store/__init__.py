"""The only SQL. Colourless: functions here yield statements and turn rows into facts.

`api.py` is the port: statements, plans, and what an engine does with them. `ledger.py` gathers the
ledger's plans: `load.py` turns keys into facts, `save.py` changes into rows, `log.py` keeps the
change rows, `reads.py` looks, `windows.py` goes through many rows piece by piece; `rows.py` knows
the columns, `check.py` whether all is consistent. `admission.py` gathers admission's plans, its
files are called alike. `access.py` is about tokens, `audit.py` about audit rows; `compaction.py`
and `receipts.py` forget what is old. `open.py` alone picks the engine: `sqlite.py` runs statements
on the file of `sqlite_file.py`, `sqlite_copy.py` backs it up and restores it, `migrate.py` brings
it up to date; `postgres.py` runs them on the connections of `postgres_link.py`, long reads as in
`postgres_aside.py`; `postgres_commit.py` asks after a lost commit, `postgres_migrate.py` brings
that database up to date, `postgres_probe.py` tests the server. `mark.py` is the high-water mark by
which `sqlite_history.py` and `postgres_known.py` notice a restore; `formats.py` says which releases
may write, `unknown_members.py` what they keep of newer ones. `addresses.py` hides passwords,
`ownership.py` checks who can change a file. The statements stand in `queries/<engine>/<room>.sql`
and are read by `sql.py`; the tables in `schema/<engine>/`. May import: `core`.
"""
