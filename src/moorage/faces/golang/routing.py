"""Addresses as `http.ServeMux` of Go takes them: first tidied up, by a redirect."""

import posixpath
from html import escape
from urllib.parse import quote

from moorage.faces.golang.browsers import browser_refused
from moorage.faces.golang.passwords import Passwords
from moorage.faces.golang.responses import Answer
from moorage.faces.web import Scope

SAFE = "/$&+,:;=@-_.~"
"""What stays as it is in a path that Go writes."""

_ESCAPED = {"&#x27;": "&#39;", "&quot;": "&#34;"}


def tidied(path: str) -> str:
    """Return a path without empty, `.` and `..` segments; a slash at the end stays."""
    clean = posixpath.normpath("/" + path.lstrip("/"))
    return clean + "/" if path.endswith("/") and clean != "/" else clean


def without_handler(scope: Scope, passwords: Passwords) -> Answer | None:
    """Return the answer to a request that no handler sees; None: one must answer it."""
    return (
        browser_refused(scope)
        or passwords.refused(scope)
        or redirect(scope["method"], scope["path"], scope["query_string"])
    )


def redirect(method: str, path: str, query_string: bytes) -> Answer | None:
    """Return the answer to a path that is not tidy; None: it is."""
    wanted = tidied(path)
    if wanted == path:
        return None
    target = quote(wanted, safe=SAFE)
    if query_string:
        target += "?" + query_string.decode("latin-1")
    more = ((b"location", target.encode("latin-1")),)
    if method not in ("GET", "HEAD"):
        return Answer(301, more=more)
    body = b""
    if method == "GET":
        shown = escape(target)
        for python, go in _ESCAPED.items():
            shown = shown.replace(python, go)
        body = f'<a href="{shown}">Moved Permanently</a>.\n\n'.encode("latin-1")
    return Answer(301, body, b"text/html; charset=utf-8", more)
