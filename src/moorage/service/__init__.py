"""The use cases that faces may call, and the batches that execute them.

* `app.py` combines everything in one object, `Service`.
* Domains: `ledger/`, `admission/`, `fleet/` (agents and reporters), `compat/` (Boskos and the lease
  proxy), `access/` (tokens, roles, audit rows).
* `batch/` executes requests in transactions; `feed/` follows what was committed.
* `searches.py` runs candidate searches, `fair_turns.py` shares the event loop between them and
  short work, `caller_turns.py` long reads between callers, `unsent_memory.py` bounds the memory of
  long responses.
* `background.py` runs loops, `chores.py` periodic tasks; `operations.py` checks and backs up the
  database.
* `acting.py` tries what operators do before it is done.
* `token_ends.py` ends the tickets of tokens that are not valid any more.
* `values.py` converts times and durations for the native API and checks its input,
  `pages.py` paginates lists, `errors.py` translates errors of the store, `audit_log.py` writes
  audit rows to the log, `audit_entries.py` makes them. `histogram.py` counts durations. `ids.py`
  and `clock.py` provide randomness and time, `os_vocabulary.py` the standard resource classes
  and traits.

May import: `store`, `core`, `wire`.
"""
