"""The running server: the one place where everything is joined.

`app.py` joins the service and the faces to one ASGI application; `lifecycle.py` starts, announces
and stops the process, `signals.py` says when; `protocol.py` guards the HTTP connection; `hosts.py`
knows which names clients may address; `logs.py` and `metrics.py` tell what happens. May import:
`faces`, `config`, `service` and below. Start at `lifecycle.py`.
"""
