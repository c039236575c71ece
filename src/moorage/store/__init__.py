"""All SQL. Neither sync nor async: functions yield statements and turn rows into facts.

* `api.py` is the port: statements, plans, and the engine protocol. `sql.py` reads the statements
  from `queries/` (`common/<room>.sql`, `<engine>/<room>.sql`); the tables are in `schema/`.
* Rooms: `ledger/`, `admission/`, `fleet/` with agents and reporters, and `access/` with tokens and
  audit rows. `batch.py` saves the changes of a batch in all of them, `service_clock.py` the time
  that they share. `encoding.py` writes values as JSON.
* The change log: `changelog.py` writes, follows and reads it, `changelog_compaction.py` deletes old
  revisions. `catalog_file.py` is the file of the catalog as of a revision, `import_mark.py` the
  mark of an import in the clock row.
* Engines: `sqlite/` and `postgres/`. Only `open.py` selects one, by the address (`addresses.py`).
  `migrations.py` knows the versions of the schema.
* Safety: `high_water_mark.py` detects a restored database, `formats.py` decides which releases may
  write, `unknown_members.py` preserves data of newer releases, `directories.py` makes names of
  files durable, `unfinished.py` hides a backup until it is complete, `check.py` finds inconsistent
  rows, with `differences.py`, and offers that no agent makes, `receipts.py` deletes old receipts of
  commits.

May import: `core`.
"""
