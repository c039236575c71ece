"""The only SQL. Colourless: functions here yield statements and turn rows into facts.

* `api.py` is the port: statements, plans, and what an engine does with them. `sql.py` reads the
  statements from `queries/` (`<engine>/<room>.sql`); the tables are in `schema/`.
* Rooms: `ledger/`, `admission/`, and `access/` with tokens and audit rows. `batch.py` saves what a
  batch has changed in all of them. `encoding.py` writes values as JSON.
* The change log: `changelog.py` writes and follows it, `pages.py` reads pages of it,
  `changelog_compaction.py` forgets old revisions.
* Engines: `open.py` alone picks one, by the address (`addresses.py`); `sqlite/` and `postgres/`.
  `migrations.py` knows the versions of the schema.
* Safety: `high_water_mark.py` notices a restored database, `formats.py` says which releases may
  write, `unknown_members.py` keeps what newer releases wrote, `ownership.py` checks who may change
  a file, `check.py` looks for inconsistent rows, `receipts.py` forgets receipts of commits.

May import: `core`.
"""
