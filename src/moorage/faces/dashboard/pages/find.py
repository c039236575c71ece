"""What the search box finds: things of all kinds, each with a link to its page."""

from collections.abc import Mapping
from http import HTTPStatus
from itertools import groupby
from operator import attrgetter
from typing import Any
from urllib.parse import quote

from moorage.core.limits import FIND_LIMIT_MAX
from moorage.faces.dashboard.routing import ROOT, Page, PageRequest
from moorage.faces.native_api import RefusedError
from moorage.wire.finding import Found
from moorage.wire.operations import finding

SHOWN = 20

TITLES = {
    "provider": "Machines and other providers",
    "agent": "Agents",
    "group": "Groups of agents",
    "pool": "Pools",
    "lease": "Leases",
    "ticket": "Tickets",
    "consumer": "Consumers",
    "project": "Projects",
    "reshape": "Reshapes",
    "token": "Tokens",
}

ADDRESSES = {
    "provider": "fleet/machines/{}",
    "agent": "agents/{}",
    "group": "fleet?agent_group={}",
    "pool": "pools/{}",
    "lease": "leases/{}",
    "ticket": "leases/{}",
    "consumer": "consumers/{}",
    "project": "consumers?project={}",
    "reshape": "reshapes/{}",
    "token": "audit?target={}",
}
"""The page of each kind, below the dashboard, with the place of the id."""


def address_of(found: Found) -> str:
    """Return the address of the page that is about a thing."""
    return f"{ROOT}/{ADDRESSES[found.kind].format(quote(found.id, safe='/:'))}"


async def show(request: PageRequest) -> Mapping[str, Any]:
    """Return what the text of the address finds."""
    text = request.query.get("text", "").strip()
    variables: dict[str, Any] = {
        "title": f"Find {text}" if text else "Find",
        "text": text,
        "refused": "",
    }
    variables |= {"sections": [], "more": (), "all": request.query.get("all", "")}
    if not text:
        return variables
    limit = FIND_LIMIT_MAX if variables["all"] else SHOWN
    try:
        answer = await request.get(finding.FIND, text=text, limit=limit)
    except RefusedError as refused:
        if refused.status != HTTPStatus.BAD_REQUEST:
            raise
        return variables | {"refused": refused.message}
    sections = [
        (kind, TITLES[kind], [(address_of(one), one) for one in alike])
        for kind, alike in groupby(answer.found, attrgetter("kind"))
    ]
    return variables | {"sections": sections, "more": answer.more}


ENTRIES = (
    Page(
        path=f"{ROOT}/find",
        title="Find",
        template="find.html",
        show=show,
        live=False,
        needs=finding.FIND,
    ),
)
