"""All pools: how full each is, and how long its line."""

from collections.abc import Mapping
from typing import Any

from moorage.faces.dashboard.routing import ROOT, Page, PageRequest

POOLS_SHOWN = 100


async def show(request: PageRequest) -> Mapping[str, Any]:
    """Return a page of pools."""
    page = await request.get("/v1/pools", cursor=request.query.get("cursor"), limit=POOLS_SHOWN)
    return {"page": page}


ENTRIES = (Page(path=f"{ROOT}/pools", title="Pools", template="pools.html", show=show),)
