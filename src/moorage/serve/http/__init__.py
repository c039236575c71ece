"""Accepts, guards and limits connections.

`listening.py` accepts and counts connections. `protocol.py` guards each of them, on top of
`uvicorn_connection.py`; `content_length.py` and `refusals.py` are its parts. `prompt_connection.py`
answers signs of life without a task for each. `delivery.py` finds out whether an answer was read,
`delivering_connection.py` does so for a connection. `memory_budget.py` limits the memory of all
connections together; `budgeted_connection.py` counts the memory of one. `hosts.py` decides which
host names are allowed, `proxies.py` which proxies are trusted. May import: `faces`, `config`.
"""
