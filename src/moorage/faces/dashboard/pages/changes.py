"""The stream of committed changes, newest last, filtered by kind."""

from collections.abc import Mapping
from typing import Any

from moorage.faces.dashboard.routing import ROOT, Page, PageRequest
from moorage.faces.native_api import RefusedError
from moorage.wire.changes import VALUES

SHOWN = 200
REVISIONS_BACK = 100
"""Without a cursor the page begins this many revisions ago."""

GONE = 410


async def show(request: PageRequest) -> Mapping[str, Any]:
    """Return a window of changes."""
    kinds = request.query.get("kind") or None
    newest = (await request.get("/v1/watch", wait=0)).next
    asked = request.query.get("after", "")
    after, gone = asked or _before(newest), ""
    try:
        window = await request.get("/v1/watch", after=after, kinds=kinds, wait=0, limit=SHOWN)
    except RefusedError as refused:
        if refused.status != GONE:
            raise
        if asked:
            gone = f"{refused.message} These are the oldest ones."
        after = refused.oldest or newest
        window = await request.get("/v1/watch", after=after, kinds=kinds, wait=0, limit=SHOWN)
    return {
        "window": window,
        "kinds": sorted(VALUES),
        "after": after,
        "newest": newest,
        "gone": gone,
    }


def _before(cursor: str) -> str:
    epoch, revision, *_ = cursor.split(".")
    return f"{epoch}.{max(0, int(revision) - REVISIONS_BACK)}"


ENTRIES = (
    Page(
        path=f"{ROOT}/changes",
        title="Changes",
        template="changes.html",
        show=show,
        needs="/v1/watch",
    ),
)
