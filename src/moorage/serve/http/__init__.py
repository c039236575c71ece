"""Connections: accepted, guarded, bounded.

`listening.py` accepts and counts connections. `protocol.py` guards each of them, on top of
`uvicorn_connection.py`; `content_length.py` and `refusals.py` are its parts. `memory_budget.py`
bounds the memory of all connections together; `budgeted_connection.py` counts what one of them
holds. `hosts.py` knows which names clients may address, `proxies.py` which proxies are trusted. May
import: `faces`, `config`.
"""
