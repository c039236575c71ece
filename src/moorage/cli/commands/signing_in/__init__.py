"""Signing in to servers: the commands of people who use several, or the dashboard.

`contexts.py` has `moorage login` and `moorage context`, whose file `context_file.py` changes;
`dashboard.py` makes a one-time link for a browser. May import: what `commands` may.
"""
