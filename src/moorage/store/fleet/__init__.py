"""The fleet's rows: agents, reporters and their groups.

`rows.py` maps values to rows. `load.py` turns keys into facts, `save.py` turns changes into rows,
`changes.py` writes and reads change rows, `reads.py` answers queries from
rows. `check.py` compares every column with the bodies. `heard.py` stores signs of life.
May import: the root of `store`, `core/fleet`.
"""
