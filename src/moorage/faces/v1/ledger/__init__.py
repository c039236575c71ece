"""Handlers of the ledger.

`claims.py` chooses providers and allocates from them, `explain.py` explains why nothing fits.
`providers.py` makes, lists, shows, drains and deletes providers, `consumers.py` lists who uses
them, `usages.py` how much that is, `capacity.py` sums them up, `reshapes.py` with
`reshape_texts.py` changes the shape of trees by plans, `imports.py` moves a ledger in. May import:
the root of `faces/v1`, `service`, `core`, `wire`.
"""
