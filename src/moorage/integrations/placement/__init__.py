"""Moves a ledger from OpenStack Placement, and back.

An import reads all of the original: `reading.py` from its database, `original_api.py` over its API.
`addresses.py` says where the database is, `database.py` reads its tables at one moment,
`schemas.py` knows the schema of each release, `source_error.py` is why it cannot be read.
`tables/`, `names.py` and `inventories.py` make rows of the tables, with what `values.py` says of
single values and `capacity_there.py` of capacity; `oddities.py` has all that may be odd, and what
becomes of it.
`rows.py` holds all rows, `ledger.py` reads and writes those of Moorage, `difference.py` compares
both and orders what is to be sent, `importing.py` has the steps of an import, `report.py` writes
what was found.

`asking.py` asks both Placement APIs. A verification asks about what `sampling.py` selects;
`judging.py` compares two answers, and `verification.py` does all of it. `whole_ledger.py` has what
the original cannot keep, `target.py` is the database that an export fills, `exporting.py` has its
steps. May import: `client`, `wire`, SQLAlchemy; never the server.
"""
