"""Reshape plans: preview, commit, list, undo."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.wire.operations.operation import Access, Content, Operation, Types

if TYPE_CHECKING:
    from moorage.wire import reshapes
else:
    reshapes = Types("reshapes")

PLAN_RESHAPE = Operation(
    Access("POST /v1/reshapes:plan", "operator"),
    Content(body=reshapes.ReshapeAsked, answer=reshapes.ReshapePlanned, bulk=True),
    "Show what a plan would do, and all that speaks against it; nothing is written or locked.",
)
COMMIT_RESHAPE = Operation(
    Access("POST /v1/reshapes", "operator"),
    Content(body=reshapes.ReshapeWanted, answer=reshapes.Reshape, status=201, bulk=True),
    "Carry out a plan as a whole, or refuse it with all reasons.",
)
LIST_RESHAPES = Operation(
    Access("GET /v1/reshapes", "reader"),
    Content(parameters=reshapes.ReshapesAsked, answer=reshapes.ReshapePage),
    "List reshapes, newest first.",
)
# Of two paths that match, the first one counts: the other is that of a single reshape.
UNDO_RESHAPE = Operation(
    Access("POST /v1/reshapes/{id}:undo", "operator"),
    Content(body=reshapes.UndoWanted, answer=reshapes.ReshapeUndone, bulk=True),
    "Undo a reshape, unless something that it has written has been changed since.",
)
GET_RESHAPE = Operation(
    Access("GET /v1/reshapes/{id}", "reader"),
    Content(answer=reshapes.Reshape),
    "Show a reshape with all that it has done.",
)
