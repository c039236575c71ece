"""Allocations: those of a consumer, those on a provider, and their replacement."""

import asyncio
from collections.abc import Sequence
from typing import Any

from moorage.core.ids import ConsumerId, ProviderId
from moorage.core.ledger.allocations import ANY, KEEP, ConsumerRequest
from moorage.core.ledger.model import Allocations
from moorage.core.ledger.search import Catalog
from moorage.faces.json_decoding import decoded
from moorage.faces.placement.input import schemas
from moorage.faces.placement.input.bodies import body_decode, invalid, named_twice
from moorage.faces.placement.microversion import LATEST
from moorage.faces.placement.order import holders_in_order
from moorage.faces.placement.request import Request, Response, json_answer, members_json, pieces_of
from moorage.faces.query_strings.refusals import ProblemError
from moorage.faces.query_strings.uuids import uuid_normal
from moorage.service.ledger.allocation_cases import AllocationsDelete, AllocationsReplace
from moorage.service.ledger.queries import ProviderAllocation

SORTED_AT_ONCE = 1_000
"""Up to this many consumers of a provider are sorted on the event loop: a few milliseconds."""

HOLDER_BYTES = 512
"""Bytes of memory for one consumer's allocations on a provider, until they are encoded."""

OWNER_SINCE = 12
GENERATION_SINCE = 28
TYPE_SINCE = 38

NO_TYPE = "unknown"
"""The type shown for consumers without a type."""

NOBODY = "00000000-0000-0000-0000-000000000000"
"""Project and user of consumers written before microversion 1.8."""


def _by_version(first: Any, *later: tuple[int, Any]) -> tuple[Any, ...]:
    """Return the type of body of each microversion; `later` has those since a microversion."""
    kinds = [first] * (LATEST + 1)
    for since, kind in later:
        kinds[since:] = [kind] * (LATEST + 1 - since)
    return tuple(kinds)


_PUT_BODIES = _by_version(
    schemas.AllocationsPut,
    (8, schemas.AllocationsPut8),
    (12, schemas.AllocationsPut12),
    (28, schemas.Allocations28),
    (34, schemas.Allocations34),
    (38, schemas.Allocations38),
)
_POST_BODIES = _by_version(
    schemas.Consumers13,
    (28, schemas.Consumers28),
    (34, schemas.Consumers34),
    (38, schemas.Consumers38),
)


async def show(request: Request) -> Response:
    """GET /allocations/{consumer}. An unknown consumer has no allocations."""
    uuid = ConsumerId(uuid_normal(request.path[0]) or request.path[0])
    consumer = await request.service.reads.consumer(uuid)
    if consumer is None:
        return json_answer({"allocations": {}}, request.now())
    catalog = await request.catalog()
    records = {uuid: catalog.record(uuid) for uuid in consumer.allocations}
    generations = {uuid: one.provider.generation for uuid, one in records.items() if one}
    if len(generations) < len(records):  # they come or go right now
        consumer, generations = await request.service.reads.consumer_places(consumer.uuid)
        if consumer is None:
            return json_answer({"allocations": {}}, request.now())
    held = {
        provider: {"resources": amounts, "generation": generations[provider]}
        for provider, amounts in consumer.allocations.items()
        if provider in generations
    }
    shown: dict[str, Any] = {"allocations": held}
    if request.version >= OWNER_SINCE:
        shown["project_id"] = consumer.project_id
        shown["user_id"] = consumer.user_id
    if request.version >= GENERATION_SINCE:
        shown["consumer_generation"] = consumer.generation
    if request.version >= TYPE_SINCE:
        shown["consumer_type"] = consumer.consumer_type or NO_TYPE
    return json_answer(shown, consumer.updated_at)


async def provider_index(request: Request) -> Response:
    """GET /resource_providers/{uuid}/allocations."""
    record = await request.provider("Resource provider '{1}' not found: {0}")
    found = await request.service.reads.provider_allocations(record.provider.uuid)
    catalog = await request.catalog()
    modified = max((updated for *_, updated in found), default=request.now())

    ordered = await _in_order(catalog, found)

    def write(some: Sequence[ProviderAllocation]) -> bytes:
        held: dict[str, Any] = {}
        for consumer, generation, amounts, _ in some:
            held[consumer] = {"resources": amounts}
            if request.version >= GENERATION_SINCE:
                held[consumer]["consumer_generation"] = generation
        return members_json(held)

    end = b'},"resource_provider_generation":%d}' % record.provider.generation
    pieces = pieces_of(b'{"allocations":{', ordered, write, end)
    work = request.written(pieces, HOLDER_BYTES * len(ordered))
    return Response(200, await request.service.turns.driven(work), modified)


async def _in_order(catalog: Catalog, found: list[ProviderAllocation]) -> list[ProviderAllocation]:
    """Return a provider's allocations in order; long lists are sorted in a thread."""
    if len(found) <= SORTED_AT_ONCE:
        return holders_in_order(catalog, found)
    return await asyncio.to_thread(holders_in_order, catalog, found)


async def replace(request: Request) -> Response:
    """PUT /allocations/{consumer}."""
    uuid = uuid_normal(request.path[0])
    if uuid is None:
        raise ProblemError(400, f"Malformed consumer_uuid: {request.path[0]}")
    kind, consumer = _PUT_BODIES[request.version], ConsumerId(uuid)
    wanted = await decoded(
        request.body, lambda: consumer_request(consumer, body_decode(request.body, kind))
    )
    await request.service.transactor.submit(AllocationsReplace([wanted]))
    return Response(204)


async def replace_many(request: Request) -> Response:
    """POST /allocations."""
    kind = _POST_BODIES[request.version]
    wanted = await decoded(request.body, lambda: consumer_requests(body_decode(request.body, kind)))
    await request.service.transactor.submit(AllocationsReplace(wanted))
    return Response(204)


async def delete(request: Request) -> Response:
    """DELETE /allocations/{consumer}."""
    uuid = ConsumerId(uuid_normal(request.path[0]) or request.path[0])
    await request.service.transactor.submit(AllocationsDelete(uuid))
    return Response(204)


def consumer_requests(body: dict[str, Any]) -> list[ConsumerRequest]:
    """Return the requests of several consumers. Raises ProblemError 400 if one is named twice."""
    requests = {
        uuid.lower(): consumer_request(ConsumerId(uuid.lower()), each)
        for uuid, each in body.items()
    }
    if len(requests) != len(body):
        raise invalid("a consumer is named twice, in upper and in lower case")
    return list(requests.values())


def consumer_request(consumer: ConsumerId, body: Any) -> ConsumerRequest:
    """Return one consumer's request, from a body of any microversion."""
    owned = not isinstance(body, schemas.AllocationsPut) or isinstance(
        body, schemas.AllocationsPut8
    )
    return ConsumerRequest(
        consumer=consumer,
        allocations=_amounts(body.allocations),
        project_id=body.project_id if owned else NOBODY,
        user_id=body.user_id if owned else NOBODY,
        consumer_type=body.consumer_type if isinstance(body, schemas.Allocations38) else KEEP,
        generation=body.consumer_generation if isinstance(body, schemas.Allocations28) else ANY,
    )


def _amounts(allocations: Any) -> Allocations:
    if isinstance(allocations, list):
        return {
            ProviderId(uuid_normal(each.resource_provider.uuid) or ""): each.resources
            for each in allocations
        }
    amounts = {ProviderId(uuid.lower()): each.resources for uuid, each in allocations.items()}
    if len(amounts) != len(allocations):
        raise named_twice()
    return amounts
