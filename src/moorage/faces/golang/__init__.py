"""The HTTP and JSON behavior of Go services, for the faces that replace one of them.

`query.py` reads query strings, `bodies.py` bodies and their JSON. `responses.py` writes responses,
with JSON, times and quoted strings. `routing.py` redirects; `callers.py` refuses requests of web
pages, and callers without a password. May import: the core and what all faces share; not the
service.
"""
