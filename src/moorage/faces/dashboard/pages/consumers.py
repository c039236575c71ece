"""Consumers: a filtered list of who uses what, and one with all that it holds."""

from collections.abc import Mapping
from typing import Any

from moorage.faces.dashboard.exports import exported
from moorage.faces.dashboard.forms import seconds
from moorage.faces.dashboard.routing import ROOT, Answer, Data, Page, PageRequest
from moorage.wire.operations import ledger
from moorage.wire.providers import ConsumerPage, ConsumerShown

SHOWN = 100
EXPORTED = 1_000
FILTERS = ("type", "project", "user", "tree")
"""Parameters of an address that are parameters of the API, too."""

CONSUMERS = f"{ROOT}/consumers"


async def _page(request: PageRequest, limit: int) -> ConsumerPage:
    """Return a page of the consumers that the address asks for. Raises RefusedError."""
    query = request.query
    asked: dict[str, object] = {name: query.get(name, "").strip() or None for name in FILTERS}
    provider, older = query.get("provider", "").strip(), query.get("older", "").strip()
    return await request.get(
        ledger.LIST_CONSUMERS,
        **asked,
        provider=await provider_of(request, provider) if provider else None,
        older=seconds("The age", older) if older else None,
        cursor=query.get("cursor") or None,
        limit=limit,
    )


async def provider_of(request: PageRequest, text: str) -> str:
    """Return the UUID of a provider with this name, or the text if there is none."""
    catalog = await request.service.index.current()
    return catalog.named(text) or text


async def show_all(request: PageRequest) -> Mapping[str, Any]:
    """Return a page of consumers, by UUID."""
    return {"page": await _page(request, SHOWN)}


async def export(request: PageRequest) -> Answer:
    """Return up to 1,000 consumers of the filtered list, from the cursor on."""
    page = await _page(request, EXPORTED)
    return await exported(
        request, "consumers", ConsumerShown, page.consumers, page.next, page.as_of
    )


async def show_one(request: PageRequest) -> Mapping[str, Any]:
    """Return one consumer. Raises RefusedError."""
    consumer = await request.get(ledger.GET_CONSUMER, request.variables["id"])
    return {"title": f"Consumer {consumer.uuid[:8]}", "consumer": consumer}


ENTRIES = (
    Page(
        path=CONSUMERS,
        title="Consumers",
        template="ledger/consumers.html",
        show=show_all,
        needs=ledger.LIST_CONSUMERS,
    ),
    Data(path=f"{CONSUMERS}.csv", read=export),
    Data(path=f"{CONSUMERS}.json", read=export),
    Page(
        path=f"{CONSUMERS}/{{id}}",
        title="Consumer",
        template="ledger/consumer.html",
        show=show_one,
        needs=ledger.GET_CONSUMER,
    ),
)
