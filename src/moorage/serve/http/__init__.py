"""Accepts, guards and limits connections.

`listening.py` accepts and counts connections. `protocol.py` guards each of them, on top of
`uvicorn_connection.py`, within `connection_limits.py`; `refusals.py` has its answers.
`prompt_connection.py` answers signs of life without a task for each. `delivery.py` finds out
whether an answer was read. `memory_budget.py` limits the memory of all connections together;
`budgeted_connection.py` counts the memory of one. `hosts.py` decides which host names are allowed,
`proxies.py` which proxies are trusted. May import: `faces`, `config`.
"""
