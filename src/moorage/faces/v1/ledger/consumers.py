"""Consumers: who uses what, page by page, and one of them."""

from typing import Any

from msgspec import UNSET

from moorage.core.clock import Instant
from moorage.core.errors import Code, Error
from moorage.core.ids import ConsumerId, ProviderId
from moorage.core.ledger.model import Consumer
from moorage.core.ledger.search import Catalog
from moorage.faces.v1.routing import Handlers, Request
from moorage.service.ids import ids_with
from moorage.service.ledger.queries import ConsumerFilter
from moorage.service.values import microseconds, time_of, uuid_of
from moorage.wire.operations import ledger as operations
from moorage.wire.providers import Allocated, ConsumerPage, ConsumersAsked, ConsumerShown

UNTYPED = "unknown"
"""Placement's word for the type of consumers without one."""


async def page(request: Request[None, ConsumersAsked]) -> ConsumerPage:
    """Return a page of consumers, ordered by UUID."""
    asked, service = request.parameters, request.service
    wanted = ConsumerFilter(
        project_id=asked.project,
        user_id=asked.user,
        consumer_type=(
            UNSET if asked.type is None else None if asked.type == UNTYPED else asked.type
        ),
        provider=_provider(asked.provider),
        tree=_provider(asked.tree),
        before=(
            None
            if asked.older is None
            else Instant(service.clock.now() - microseconds("older", asked.older))
        ),
        prefix="" if asked.id_prefix is None else ids_with(asked.id_prefix)[0],
    )
    found = await service.reads.consumers_page(asked.cursor, asked.limit, wanted)
    fleet = await service.index.current()
    return ConsumerPage(
        consumers=[shown(one, fleet) for one in found.consumers],
        next=found.following,
        as_of=found.revision,
        holders=found.holders,
    )


def _provider(text: str | None) -> ProviderId | None:
    return None if text is None else ProviderId(uuid_of(text, "A provider"))


async def read(request: Request[None, Any]) -> ConsumerShown:
    """Return one consumer."""
    uuid = ConsumerId(uuid_of(request.variables["id"], "A consumer"))
    consumer = await request.service.reads.consumer(uuid)
    if consumer is None:
        raise Error(Code.ALLOCATIONS_NOT_FOUND, f"Consumer {uuid} has no allocations.")
    return shown(consumer, await request.service.index.current())


HANDLERS: Handlers = {
    operations.LIST_CONSUMERS: page,
    operations.GET_CONSUMER: read,
}


def shown(consumer: Consumer, fleet: Catalog) -> ConsumerShown:
    """Convert a consumer to its wire form."""
    held = []
    for provider, amounts in consumer.allocations.items():
        record = fleet.record(provider)
        name = None if record is None else record.provider.name
        held.append(
            Allocated(provider=provider, name=name, resources=dict(sorted(amounts.items())))
        )
    return ConsumerShown(
        uuid=consumer.uuid,
        generation=consumer.generation,
        project=consumer.project_id,
        user=consumer.user_id,
        type=consumer.consumer_type,
        allocations=sorted(held, key=lambda one: (one.name or "", one.provider)),
        created_at=time_of(consumer.created_at),
        updated_at=time_of(consumer.updated_at),
    )
