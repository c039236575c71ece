"""The catalog: all providers in memory, in chunks of rows and columns.

Start with `catalog.py` (class Catalog; `apply` keeps it up to date). `chunk.py` stores some
thousand providers of whole trees as rows, `columns.py` their figures as numpy arrays, `trees.py`
which rows form a tree, `ancestors.py` which rows are above others. `summaries.py` has bounds of
each chunk's content; `summaries_check.py` compares them with the rows. `large_changes.py` applies
large changes in parts. `packed_chunk.py` and `packed_catalog.py` turn everything into bytes and
back. May import: the rest of `core/ledger` except its decisions and the search
itself, numpy.
"""
