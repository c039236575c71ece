"""Finding things of all rooms by a text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.wire.operations.operation import Access, Content, Operation, Types

if TYPE_CHECKING:
    from moorage.wire import finding
else:
    (finding,) = map(Types, ("finding",))

FIND = Operation(
    Access("GET /v1/find", "reader", projects=True),
    Content(parameters=finding.FindAsked, answer=finding.Findings),
    "Find machines, agents, pools, leases, consumers and others by a text.",
)
