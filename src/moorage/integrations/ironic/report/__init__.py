"""`moorage ironic report`: tells the ledger what Ironic's nodes offer, beside nova or instead.

`mapping.py` says what a node is in the ledger, `reading.py` reads what has changed in Ironic,
`membership.py` keeps the place in the group and says which nodes are the reporter's own.
`known_nodes.py` keeps what was read, `remarks.py` says what is wrong with nodes. `reporter.py`
makes the passes with them, `sending.py` sends; `conductors.py` observes the live conductors.
`difference.py` only compares, `dry_run.py` says what a start would do.
May import: its siblings in `ironic`, `report_api`, `client`, `wire`.
"""
