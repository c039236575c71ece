"""The stream of committed changes, newest last, filtered by kind."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from moorage.faces.dashboard.exports import exported
from moorage.faces.dashboard.routing import ROOT, Answer, Data, Page, PageRequest
from moorage.faces.native_api import RefusedError
from moorage.wire.changes import VALUES, Change, Changes
from moorage.wire.operations import feed

SHOWN = 200
REVISIONS_BACK = 100
"""Without a cursor the page begins this many revisions ago."""

EXPORTED = 1_000


async def _window(request: PageRequest, after: str, limit: int) -> Changes:
    """Return changes after a cursor, of the kind that the address asks for."""
    kinds = request.query.get("kind") or None
    return await request.get(feed.WATCH, after=after, kinds=kinds, wait=0, limit=limit)


async def _newest(request: PageRequest) -> str:
    return (await request.get(feed.WATCH, wait=0)).next


async def show(request: PageRequest) -> Mapping[str, Any]:
    """Return a window of changes."""
    newest, asked = await _newest(request), request.query.get("after", "")
    after, gone = asked or _before(newest), ""
    try:
        window = await _window(request, after, SHOWN)
    except RefusedError as refused:
        if refused.status != HTTPStatus.GONE:
            raise
        if asked:
            gone = f"{refused.message} These are the oldest ones."
        after = refused.oldest or newest
        window = await _window(request, after, SHOWN)
    return {
        "window": window,
        "kinds": sorted(VALUES),
        "after": request.query.get("after") or _before(newest),
        "newest": newest,
        "gone": gone,
    }


async def export(request: PageRequest) -> Answer:
    """Return up to 1,000 changes of the page, and the cursor of what follows."""
    after = request.query.get("after") or _before(await _newest(request))
    window = await _window(request, after, EXPORTED)
    return await exported(request, "changes", Change, window.changes, window.next)


def _before(cursor: str) -> str:
    epoch, revision, *_ = cursor.split(".")
    return f"{epoch}.{max(0, int(revision) - REVISIONS_BACK)}"


ENTRIES = (
    Page(
        path=f"{ROOT}/changes",
        title="Changes",
        template="changes.html",
        show=show,
        needs=feed.WATCH,
    ),
    Data(path=f"{ROOT}/changes.csv", read=export),
    Data(path=f"{ROOT}/changes.json", read=export),
)
