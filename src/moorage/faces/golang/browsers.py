"""Refuses requests of web pages: without tokens, any page could act on behalf of its visitor.

Clients of Boskos and of the lease proxy are programs, which send none of these headers.
Source: Fetch standard, "Origin" and "Sec-Fetch-Site".
"""

from moorage.faces.golang.responses import Response, refusal
from moorage.faces.web import Scope

_FOREIGN = frozenset({b"cross-site", b"same-site"})


def browser_refused(scope: Scope) -> Response | None:
    """Return the refusal of a request sent by a web page; None for all other requests."""
    for name, value in scope["headers"]:
        if name == b"origin" or (name == b"sec-fetch-site" and value.lower() in _FOREIGN):
            return refusal(403, "Requests of web pages are refused here.")
    return None
