"""The running server: the one place where everything is joined.

`app.py` joins the service and the faces to one ASGI application; `lifecycle.py` starts, announces
and stops the process, `signals.py` says when; `listening.py` accepts and counts connections,
`protocol.py` guards each of them, `refusals.py` writes their refusals; `held.py` bounds the memory
that all connections hold together, and `holding.py` counts what one of them holds; `hosts.py` knows
which names clients may address, `proxies.py` which proxies are trusted; `exposure.py` warns of
dangerous settings; `garbage.py` says when garbage is collected; `logs.py` and `metrics.py` report
what happens. May import: `faces`, `config`, `service` and below. Start at `lifecycle.py`.
"""
