"""The use cases: what a face may ask for, and the batch that carries it out.

* `app.py` joins everything to one object, `Service`.
* Rooms: `ledger/`, `admission/`, `compat/` (Boskos and the lease proxy), `access/` (tokens, roles,
  audit rows).
* `batch/` carries out requests in transactions; `feed/` follows what was committed.
* `native/` turns values into those of the native API, and back.
* `searches.py` runs candidate searches, `fair_turns.py` shares the event loop between them and
  short work, `unsent_memory.py` bounds the memory of long responses.
* `chores.py` runs periodically, `operations.py` checks and backs up the database.
* `pages.py` is about lists in pages, `errors.py` translates errors of the store, `audit_log.py`
  writes audit rows to the log. `ids.py` and `clock.py` are the machine's randomness and time,
  `os_vocabulary.py` the standard resource classes and traits.

May import: `store`, `core`, `wire`.
"""
