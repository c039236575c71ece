"""Projects: how much each uses, and one of them by user, by type and by class."""

from collections.abc import Mapping
from typing import Any

from moorage.faces.dashboard.exports import exported
from moorage.faces.dashboard.routing import ROOT, Answer, Data, Page, PageRequest
from moorage.wire.operations import ledger
from moorage.wire.usages import UsageLine, UsagePage

SHOWN = 50
EXPORTED = 1_000

BY = {"project": "By project", "user": "By user", "type": "By type", "class": "By class"}
"""The ways to sum up, and what the choice is called; the first one by default."""

PROJECTS = f"{ROOT}/projects"


async def _page(request: PageRequest, by: str, limit: int) -> UsagePage:
    """Return a page of sums that the address asks for. Raises RefusedError."""
    query = request.query
    usages: UsagePage = await request.recent(
        ledger.LIST_USAGES,
        by=by,
        project=query.get("project") or None,
        resource_class=query.get("resource_class", "").strip() or None,
        cursor=query.get("cursor") or None,
        limit=limit,
    )
    return usages


def _by(request: PageRequest) -> str:
    """Return how the reader wants it summed up; of one project, by user unless it is said."""
    asked = request.query.get("by", "")
    if asked in BY and not (asked == "project" and request.query.get("project")):
        return asked
    return "user" if request.query.get("project") else next(iter(BY))


async def show(request: PageRequest) -> Mapping[str, Any]:
    """Return a page of sums."""
    by, project = _by(request), request.query.get("project", "")
    page = await _page(request, by, SHOWN)
    whole = await _page(request, "project", 1) if project and by != "project" else None
    return {
        "title": f"Project {project}" if project else "Projects",
        "project": project,
        "by": by,
        "choices": {name: text for name, text in BY.items() if not (project and name == "project")},
        "page": page,
        "whole": whole.lines[0] if whole and whole.lines else None,
    }


async def export(request: PageRequest) -> Answer:
    """Return up to 1,000 sums of the page, from the cursor on."""
    page = await _page(request, _by(request), EXPORTED)
    return await exported(request, "projects", UsageLine, page.lines, page.next, page.as_of)


ENTRIES = (
    Page(
        path=PROJECTS,
        title="Projects",
        template="ledger/projects.html",
        show=show,
        needs=ledger.LIST_USAGES,
    ),
    Data(path=f"{PROJECTS}.csv", read=export),
    Data(path=f"{PROJECTS}.json", read=export),
)
