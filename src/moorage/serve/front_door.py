"""Leads people to the dashboard: by a line at the start, and browsers from `/`.

Programs get the versions of Placement there.
"""

from http import HTTPStatus
from pathlib import Path

from moorage.config.prefixes import prefix_parse
from moorage.config.settings import Settings
from moorage.faces.web import Receive, Scope, Send, answer_send, headers_of
from moorage.serve.app import Face
from moorage.store.addresses import is_postgres

HTML, ANYTHING = "text/html", "*/*"
PAGES = "/ui"


def front_door(placement: Face) -> Face:
    """Return a face that redirects browsers at the root, and passes on everything else."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] not in ("", "/") or not _is_browser(scope):
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
        await answer_send(scope, send, HTTPStatus.SEE_OTHER, headers, b"")

    return answer


def _is_browser(scope: Scope) -> bool:
    """Return whether a request prefers a page, and takes anything: browsers do.

    What takes only pages is refused by Placement, as by the original.
    """
    if scope["method"] not in ("GET", "HEAD"):
        return False
    ranges = headers_of(scope).get("accept", "").lower().split(",")
    kinds = [one.partition(";")[0].strip() for one in ranges]
    return kinds[0] == HTML and ANYTHING in kinds


def pages_line(settings: Settings, token_file: Path, url: str) -> str:
    """Return the line that says where the dashboard is, and which token opens it."""
    address = f"{url}{prefix_parse(settings.path_prefix)}/ui"
    token = {
        "token": f"the token in {token_file}" if token_file.exists() else "a token that can read",
        "keystone": "a token of Keystone or Moorage",
        "noauth2": "the token admin",
    }[settings.auth]
    # Commands find this server only beside its own database.
    opened = "open it with `moorage dashboard`, or "
    if settings.auth != "token" or is_postgres(settings.database):
        opened = ""
    return f"moorage: the dashboard is at {address}; {opened}sign in with {token}\n"
