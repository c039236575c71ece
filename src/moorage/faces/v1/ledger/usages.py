"""Usages: how much consumers hold, by project, user, type or class, page by page."""

from contextlib import suppress

import msgspec

from moorage.core.errors import Code, Error
from moorage.faces.json_decoding import json_decode
from moorage.faces.v1.authorization import check_project
from moorage.faces.v1.routing import Handlers, Request
from moorage.faces.web import RefusalError
from moorage.service.ledger.queries import UsageFilter, UsageSum
from moorage.wire.enums import UsageBy
from moorage.wire.operations import ledger as operations
from moorage.wire.usages import UsageLine, UsagePage, UsagesAsked


async def page(request: Request[None, UsagesAsked]) -> UsagePage:
    """Return a page of sums; a caller that is bound to a project gets those of its project."""
    asked, project = request.parameters, request.parameters.project
    if request.project is not None:
        project = request.project if project is None else project
        check_project(request.project, project)
    wanted = UsageFilter(
        by=asked.by,
        project_id=project,
        user_id=asked.user,
        kind=asked.type,
        resource_class=asked.resource_class,
    )
    window = await request.service.reads.usages_page(
        wanted, _place(asked.cursor), asked.limit, who=request.caller.identity
    )
    following = window.following
    return UsagePage(
        lines=[_line(asked.by, one) for one in window.sums],
        next=None if following is None else msgspec.json.encode(following).decode(),
        as_of=window.as_of,
    )


HANDLERS: Handlers = {
    operations.LIST_USAGES: page,
}


def _place(cursor: str | None) -> tuple[str, str]:
    """Return the place after which a page begins. Raises `Error`: INVALID."""
    if cursor is None:
        return "", ""
    with suppress(RefusalError):
        match json_decode(cursor.encode()):
            case [str(first), str(second)]:
                return first, second
    raise Error(
        Code.INVALID, f"{cursor!r} is not a cursor: use the value of `next` of the page before."
    )


def _line(by: UsageBy, one: UsageSum) -> UsageLine:
    first, second = one.place
    return UsageLine(
        project=first if by in ("project", "user") else None,
        user=second if by == "user" else None,
        type=first if by == "type" else None,
        resource_class=first if by == "class" else None,
        consumers=one.consumers,
        resources=one.amounts,
    )
