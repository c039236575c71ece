"""The SQLite engine.

`engine.py` runs statements on the database file that `file.py` opens and locks, and commits in
`commit_thread.py`. `migrate.py` brings the schema up to date, `history.py` detects a restored file,
`copy.py` makes backups and restores them. May import: the root of `store`.
"""
