"""Leads browsers from `/` to the dashboard: programs get the versions of Placement there."""

from http import HTTPStatus

from moorage.faces.web import Receive, Scope, Send, headers_of, path_of
from moorage.serve.app import Face

HTML = "text/html"
PAGES = "/ui"


def front_door(placement: Face) -> Face:
    """Return a face that redirects browsers at the root, and passes on everything else."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if path_of(scope) not in ("", "/") or not _is_browser(scope):
            await placement(scope, receive, send)
            return
        target = scope.get("root_path", "") + PAGES
        headers = [
            (b"location", target.encode("ascii")),
            (b"content-length", b"0"),
            (b"cache-control", b"no-store"),
            (b"vary", b"accept"),
            (b"x-content-type-options", b"nosniff"),
        ]
        await send(
            {"type": "http.response.start", "status": HTTPStatus.SEE_OTHER, "headers": headers}
        )
        await send({"type": "http.response.body", "body": b""})

    return answer


def _is_browser(scope: Scope) -> bool:
    """Return whether a request asks for a page first: browsers do, and no client of Placement."""
    if scope["method"] not in ("GET", "HEAD"):
        return False
    accept = headers_of(scope).get("accept", "").lower()
    return accept.partition(",")[0].partition(";")[0].strip() == HTML
