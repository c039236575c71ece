"""Makes reshape plans from what the ledger shows and what is known of a host; nothing is written.

`evidence.py` reads files that say what a host has, and who uses which of it. `splitting.py` splits
the inventories of a provider over its children, `changing.py` changes a few values of one,
`class_renaming.py` gives a resource class another name, `host_moving.py` gives a host another UUID
or name. Each takes values and returns a plan, for the server to judge, or raises the error of
`plan_error.py`; `trees.py` finds what is below a provider. May import: `wire`.
"""
