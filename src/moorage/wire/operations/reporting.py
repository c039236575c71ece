"""Groups of reporters, their pins and reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.wire.operations.operation import Operation, Types

if TYPE_CHECKING:
    from moorage.wire import pages, reporting
else:
    pages, reporting = map(Types, ("pages", "reporting"))

LIST_REPORTER_GROUPS = Operation(
    "GET /v1/reporter-groups",
    role="reader",
    parameters=pages.PageAsked,
    answer=reporting.ReporterGroupPage,
    summary="List groups of reporters by name.",
)

GET_REPORTER_GROUP = Operation(
    "GET /v1/reporter-groups/{name}",
    role="reader",
    scopes=("reporter",),
    answer=reporting.ReporterGroup,
    summary="Show a group of reporters, with its members.",
)

DELETE_REPORTER_GROUP: Operation[None] = Operation(
    "DELETE /v1/reporter-groups/{name}",
    role="operator",
    summary="Delete a group of reporters that has no live members; its providers stay.",
)

JOIN_REPORTER_GROUP = Operation(
    "PUT /v1/reporter-groups/{name}/members/{member}",
    role="service",
    scopes=("reporter",),
    body=reporting.MemberWanted,
    answer=reporting.Membership,
    routine=True,
    summary="Join a group of reporters, or stay in it; another instance is fenced.",
)

LEAVE_REPORTER_GROUP: Operation[None] = Operation(
    "DELETE /v1/reporter-groups/{name}/members/{member}",
    role="service",
    scopes=("reporter",),
    parameters=reporting.LeaveAsked,
    summary="Leave a group of reporters, so that its nodes get other owners at once.",
)

PUT_OBSERVED_MEMBERS = Operation(
    "PUT /v1/reporter-groups/{name}/observed",
    role="service",
    scopes=("reporter",),
    body=reporting.ObservedWanted,
    answer=reporting.ReporterGroup,
    routine=True,
    summary="Replace the members of a group that somebody else observes.",
)

LIST_PINS = Operation(
    "GET /v1/reporter-groups/{name}/pins",
    role="reader",
    scopes=("reporter",),
    parameters=pages.PageAsked,
    answer=reporting.PinPage,
    summary="List the nodes of a group that are pinned to a member, by UUID.",
)

PIN_NODES = Operation(
    "POST /v1/reporter-groups/{name}/pins",
    role="operator",
    body=reporting.PinsWanted,
    answer=reporting.ReporterGroup,
    summary="Pin up to 5,000 nodes to a member, or remove their pins.",
)

LIST_REPORTER_GROUP_NODES = Operation(
    "GET /v1/reporter-groups/{name}/nodes",
    role="reader",
    scopes=("reporter",),
    parameters=pages.PageAsked,
    answer=reporting.NodePage,
    summary="List the providers that the group reports, and those that are gone.",
)

LIST_REPORTER_GROUP_GHOSTS = Operation(
    "GET /v1/reporter-groups/{name}/ghosts",
    role="reader",
    scopes=("reporter",),
    parameters=pages.PageAsked,
    answer=reporting.GhostPage,
    summary="List providers that are gone by a report of the group, but are still allocated.",
)

SEND_REPORTS = Operation(
    "POST /v1/reports",
    role="service",
    scopes=("reporter",),
    body=reporting.ReportWanted,
    answer=reporting.NodeOutcomes,
    bulk=True,
    summary="Report nodes: the ledger follows for those that the sender owns and that differ.",
)
