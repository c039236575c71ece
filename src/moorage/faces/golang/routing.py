"""Paths as in Go's `http.ServeMux`, which redirects to a cleaned path first."""

import posixpath
from html import escape
from urllib.parse import quote

from moorage.faces.golang.callers import Passwords, browser_refused
from moorage.faces.golang.responses import Response
from moorage.faces.web import Scope

SAFE = "/$&+,:;=@-_.~"
"""Characters that Go does not escape in a path."""

_ESCAPED = {"&#x27;": "&#39;", "&quot;": "&#34;"}


def tidied(path: str) -> str:
    """Return a path without empty, `.` and `..` segments; a trailing slash is kept."""
    clean = posixpath.normpath("/" + path.lstrip("/"))
    return clean + "/" if path.endswith("/") and clean != "/" else clean


def without_handler(scope: Scope, passwords: Passwords) -> Response | None:
    """Return the answer to a request that needs no handler; None if a handler must answer."""
    return (
        browser_refused(scope)
        or passwords.refused(scope)
        or redirect(
            scope["method"], scope["path"], scope["query_string"], scope.get("root_path", "")
        )
    )


def redirect(method: str, path: str, query_string: bytes, root: str = "") -> Response | None:
    """Return the redirect to a cleaned path below `root`; None if the path is clean."""
    if path[:1] == "/" and "//" not in path and "/." not in path:
        return None  # it is clean, as almost all are
    wanted = tidied(path)
    if wanted == path:
        return None
    target = quote(root + wanted, safe=SAFE)
    if query_string:
        target += "?" + query_string.decode("latin-1")
    more = ((b"location", target.encode("latin-1")),)
    if method not in ("GET", "HEAD"):
        return Response(301, more=more)
    body = b""
    if method == "GET":
        shown = escape(target)
        for python, go in _ESCAPED.items():
            shown = shown.replace(python, go)
        body = f'<a href="{shown}">Moved Permanently</a>.\n\n'.encode("latin-1")
    return Response(301, body, b"text/html; charset=utf-8", more)
