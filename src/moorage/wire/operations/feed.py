"""The change feed, and the description of the API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moorage.wire.operations.operation import Access, Content, Operation, Types

if TYPE_CHECKING:
    from moorage.wire import changes, pages
else:
    changes, pages = map(Types, ("changes", "pages"))

EVENTS = "text/event-stream"
"""The content type of the feed as a stream of events."""

WATCH = Operation(
    Access("GET /v1/watch", "reader"),
    Content(
        parameters=pages.ChangesAsked, answer=changes.Changes, media=("application/json", EVENTS)
    ),
    "Return every committed change after a cursor, in order; wait if there is none.",
)
GET_OPENAPI = Operation(
    Access("GET /v1/openapi.json", None),
    Content(answer=dict[str, Any]),
    "Return this document; no token is required.",
)
