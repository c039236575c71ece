"""Aggregates of a provider. An aggregate exists as soon as a provider names it."""

from collections.abc import Iterable
from typing import Any

from moorage.core.ids import AggregateId
from moorage.faces.placement.input.bodies import check_unique
from moorage.faces.placement.input.schemas import AggregatesPut, AggregatesPut19
from moorage.faces.placement.request import Request, Response, json_answer
from moorage.faces.query_strings.uuids import uuid_normal
from moorage.service.ledger.provider_cases import AggregatesReplace

GENERATION_SINCE = 19


async def index(request: Request) -> Response:
    """GET /resource_providers/{uuid}/aggregates."""
    record = await request.provider()
    return _shown(request, sorted(record.tags.aggregates), record.provider.generation)


async def replace(request: Request) -> Response:
    """PUT /resource_providers/{uuid}/aggregates."""
    uuid = (await request.provider()).provider.uuid
    generation = None
    if request.version >= GENERATION_SINCE:
        body = await request.decode(AggregatesPut19)
        named, generation = body.aggregates, body.resource_provider_generation
        check_unique(named, request.body, AggregatesPut19)
    else:
        named = await request.decode(AggregatesPut)
        check_unique(named, request.body, AggregatesPut)
    aggregates = [AggregateId(uuid_normal(name) or name) for name in named]
    state = await request.service.transactor.submit(
        AggregatesReplace(uuid, frozenset(aggregates), generation)
    )
    return _shown(request, dict.fromkeys(aggregates), state.generation)


def _shown(request: Request, aggregates: Iterable[AggregateId], generation: int) -> Response:
    shown: dict[str, Any] = {"aggregates": list(aggregates)}
    if request.version >= GENERATION_SINCE:
        shown["resource_provider_generation"] = generation
    return json_answer(shown, request.now())
