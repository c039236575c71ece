"""Actions that are tried first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.wire.operations.operation import Access, Content, Operation, Types

if TYPE_CHECKING:
    from moorage.wire import acting
else:
    acting = Types("acting")

PREVIEW_ACTION = Operation(
    Access("POST /v1/actions/preview", "user", projects=True),
    Content(body=acting.ActionWanted, answer=acting.ActionEffect),
    "Return what an action would do now; changes nothing.",
)
ACT = Operation(
    Access("POST /v1/actions", "user", projects=True),
    Content(body=acting.ActionWanted, answer=acting.ActionEffect),
    "Carry out an action, unless it would do something else than its preview has shown.",
)
