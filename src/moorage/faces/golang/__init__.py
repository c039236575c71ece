"""The HTTP and JSON behavior of Go services, for the faces that replace one of them.

`query.py` reads query strings, `bodies.py` bodies, `decoding.py` their JSON. `texts.py` writes
JSON, times and quoted strings, `responses.py` whole responses. `routing.py` redirects;
`browsers.py` refuses requests of web pages, `passwords.py` callers without a password. May import:
the core and what all faces share; not the service.
"""
