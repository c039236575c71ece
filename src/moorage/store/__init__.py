"""The only SQL. Colourless: functions here yield statements and turn rows into facts.

`api.py` is the port: statements, plans, and what an engine does with them. `ledger.py` turns keys
into loads and changes into saves, `access.py` the same for tokens. `sqlite.py` runs statements,
`migrate.py` brings a database up to date, `open.py` alone picks the engine. The statements
stand in `queries/<engine>/<room>.sql`, tables in `schema/<engine>/`. May import: `core`.
"""
