"""How services written in Go read and write, for the faces that stand in for one of them.

`query.py` reads query strings, `bodies.py` bodies, `scanning.py` and `decoding.py` JSON with Go's
own words of refusal, `texts.py` writes JSON, times and quoted strings, `answers.py` whole answers,
`routing.py` redirects; `browsers.py` refuses requests of web pages, `passwords.py` callers without
a password. May import the core and what all faces share; not the service.
"""
