"""Groups of reporters, their pins and reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.wire.operations.operation import Access, Content, Operation, Types

if TYPE_CHECKING:
    from moorage.wire import pages, reporting
else:
    pages, reporting = map(Types, ("pages", "reporting"))

LIST_REPORTER_GROUPS = Operation(
    Access("GET /v1/reporter-groups", "reader"),
    Content(parameters=pages.PageAsked, answer=reporting.ReporterGroupPage),
    "List groups of reporters by name.",
)
GET_REPORTER_GROUP = Operation(
    Access("GET /v1/reporter-groups/{name}", "reader", "reporter"),
    Content(answer=reporting.ReporterGroup),
    "Show a group of reporters, with its members.",
)
DELETE_REPORTER_GROUP: Operation[None] = Operation(
    Access("DELETE /v1/reporter-groups/{name}", "operator"),
    Content(),
    "Delete a group of reporters that has no live members; its providers stay.",
)
JOIN_REPORTER_GROUP = Operation(
    Access("PUT /v1/reporter-groups/{name}/members/{member}", "service", "reporter"),
    Content(body=reporting.MemberWanted, answer=reporting.Membership),
    "Join a group of reporters, or stay in it; another instance is fenced.",
    routine=True,
)
LEAVE_REPORTER_GROUP: Operation[None] = Operation(
    Access("DELETE /v1/reporter-groups/{name}/members/{member}", "service", "reporter"),
    Content(parameters=reporting.LeaveAsked),
    "Leave a group of reporters, so that its nodes get other owners at once.",
)
PUT_OBSERVED_MEMBERS = Operation(
    Access("PUT /v1/reporter-groups/{name}/observed", "service", "reporter"),
    Content(body=reporting.ObservedWanted, answer=reporting.ReporterGroup),
    "Replace the observed members of a group.",
    routine=True,
)
LIST_PINS = Operation(
    Access("GET /v1/reporter-groups/{name}/pins", "reader", "reporter"),
    Content(parameters=pages.PageAsked, answer=reporting.PinPage),
    "List the nodes of a group that are pinned to a member, by UUID.",
)
PIN_NODES = Operation(
    Access("POST /v1/reporter-groups/{name}/pins", "operator"),
    Content(body=reporting.PinsWanted, answer=reporting.ReporterGroup),
    "Pin up to 5,000 nodes to a member, or remove their pins.",
)
LIST_REPORTER_GROUP_NODES = Operation(
    Access("GET /v1/reporter-groups/{name}/nodes", "reader", "reporter"),
    Content(parameters=pages.PageAsked, answer=reporting.NodePage),
    "List the providers that the group reports, and those that are gone.",
)
LIST_REPORTER_GROUP_GHOSTS = Operation(
    Access("GET /v1/reporter-groups/{name}/ghosts", "reader", "reporter"),
    Content(parameters=pages.PageAsked, answer=reporting.GhostPage),
    "List providers that a report of the group declared gone, but that have allocations.",
)
SEND_REPORTS = Operation(
    Access("POST /v1/reports", "service", "reporter"),
    Content(body=reporting.ReportWanted, answer=reporting.NodeOutcomes, bulk=True),
    "Report nodes; the ledger changes for nodes that the sender owns and that differ.",
)
