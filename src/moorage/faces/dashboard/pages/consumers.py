"""Consumers: a filtered list of who uses what, and one with all that it holds."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from moorage.faces.dashboard.exports import exported
from moorage.faces.dashboard.fields import seconds_in, whole
from moorage.faces.dashboard.forms import done
from moorage.faces.dashboard.routing import ROOT, Action, Answer, Data, Page, PageRequest
from moorage.faces.native_api import RefusedError
from moorage.wire.admission import Lease
from moorage.wire.dataclass import members
from moorage.wire.operations import leases, ledger, reshapes
from moorage.wire.providers import ConsumerPage, ConsumerShown
from moorage.wire.reshapes import releasing

SHOWN = 100
EXPORTED = 1_000
LEASES_SHOWN = 5
FILTERS = ("type", "project", "user", "tree")
"""Parameters of an address that are parameters of the API, too."""

CONSUMERS = f"{ROOT}/consumers"


async def _page(request: PageRequest, limit: int) -> ConsumerPage:
    """Return a page of the consumers that the address asks for. Raises RefusedError."""
    query = request.query
    asked: dict[str, object] = {name: query.get(name, "").strip() or None for name in FILTERS}
    provider = query.get("provider", "").strip()
    return await request.get(
        ledger.LIST_CONSUMERS,
        **asked,
        provider=await provider_of(request, provider) if provider else None,
        older=seconds_in(query, "older"),
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
    uuid = request.variables["id"]
    try:
        consumer = await request.get(ledger.GET_CONSUMER, uuid)
    except RefusedError as refused:
        if refused.status != HTTPStatus.NOT_FOUND:
            raise
        return {"title": "Consumer", "consumer": None, "uuid": uuid}
    held_by = await _leases_of(request, consumer.uuid)
    return {
        "title": f"Consumer {consumer.uuid[:8]}",
        "consumer": consumer,
        "uuid": consumer.uuid,
        "leases": held_by,
        "releasable": not held_by and request.permits(reshapes.COMMIT_RESHAPE),
    }


async def _leases_of(request: PageRequest, consumer: str) -> Sequence[Lease]:
    """Return the live leases that hold a consumer's allocations: it is released with them."""
    try:
        page = await request.recent(
            leases.LIST_LEASES, consumer=consumer, state="granted", limit=LEASES_SHOWN
        )
    except RefusedError:  # the reader may not list those of all pools
        return ()
    return page.leases


async def release(request: PageRequest) -> str:
    """Release all that a consumer holds, by a reshape, so that it can be undone."""
    uuid, generation = request.variables["id"], request.form.get("generation", "")
    consumer = await request.get(ledger.GET_CONSUMER, uuid)
    if await _leases_of(request, consumer.uuid):
        raise RefusedError(
            HTTPStatus.CONFLICT, "invalid", "A lease holds these allocations: end the lease."
        )
    held = [one.provider for one in consumer.allocations]
    plan = members(releasing(consumer.uuid, whole("The generation", generation), held))
    reason = request.form.get("reason", "").strip() or "released from its page"
    made = await request.ask(reshapes.COMMIT_RESHAPE, body={"plan": plan, "reason": reason})
    return done(f"{ROOT}/reshapes/{made.id}", "consumer-released")


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
    Action(path=f"{CONSUMERS}/{{id}}/release", act=release, asks="release_consumer"),
)
