"""The PostgreSQL engine.

`engine.py` runs rounds of statements on a pool of connections (`connection.py`), and long reads in
threads. `arrays.py` encodes the columns of writes. `commit.py` resolves commits whose answer was
lost. `known.py` keeps what a process knows of the shared database and its history. `migrate.py`
brings the schema up to date, `probe.py` tests the server at startup. May import: the root of
`store`.
"""
