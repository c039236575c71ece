"""Providers: lists page by page, one of them, and what operators do with it."""

from moorage.core.errors import Code, Error
from moorage.core.ids import ProviderId
from moorage.core.ledger.model import Inventory, ProviderRecord
from moorage.faces.v1.routing import Handlers, Request
from moorage.service.app import Service
from moorage.service.ids import ids_with
from moorage.service.ledger.operator_cases import ProviderDrain, ProviderRemove
from moorage.service.values import time_of, uuid_of
from moorage.wire.operations import ledger as operations
from moorage.wire.providers import (
    DeleteAsked,
    DrainRequest,
    InventoryShown,
    ProviderPage,
    ProvidersAsked,
    ProviderShown,
)


async def page(request: Request[None, ProvidersAsked]) -> ProviderPage:
    """Return a page of providers, ordered by UUID."""
    asked, service = request.parameters, request.service
    prefix = "" if asked.id_prefix is None else ids_with(asked.id_prefix)[0]
    as_of = await service.watch.now()  # read first: later changes are then sent again by the watch
    following: str | None = None
    if asked.name is None:
        uuids, following = await service.reads.providers_page(asked.cursor, asked.limit, prefix)
        fleet = await service.index.current()
    else:
        fleet = await service.index.current()
        named = fleet.named(asked.name)
        uuids = [] if named is None or not named.startswith(prefix) else [named]
    records = [record for uuid in uuids if (record := fleet.record(uuid)) is not None]
    return ProviderPage(
        providers=[shown(record) for record in records], next=following, as_of=str(as_of)
    )


async def read(request: Request[None, None]) -> ProviderShown:
    """Return one provider."""
    return shown(await _record(request.service, _uuid(request.variables["id"])))


async def drain(request: Request[DrainRequest, None]) -> ProviderShown:
    """Place nothing new on a provider, and on all below it."""
    return await _drained(request, True)


async def resume(request: Request[DrainRequest, None]) -> ProviderShown:
    """Use a drained provider again."""
    return await _drained(request, False)


async def _drained(request: Request[DrainRequest, None], drained: bool) -> ProviderShown:
    uuid, service = _uuid(request.variables["id"]), request.service
    await service.transactor.submit(
        ProviderDrain(uuid, request.actor, request.body.reason, drained)
    )
    return shown(await _record(service, uuid))


async def delete(request: Request[None, DeleteAsked]) -> None:
    """Remove a provider that has neither children nor allocations."""
    uuid = _uuid(request.variables["id"])
    await request.service.transactor.submit(
        ProviderRemove(uuid, request.actor, request.parameters.reason)
    )


HANDLERS: Handlers = {
    operations.LIST_PROVIDERS: page,
    operations.GET_PROVIDER: read,
    operations.DRAIN_PROVIDER: drain,
    operations.RESUME_PROVIDER: resume,
    operations.DELETE_PROVIDER: delete,
}


def _uuid(text: str) -> ProviderId:
    return ProviderId(uuid_of(text, "A provider"))


async def _record(service: Service, uuid: ProviderId) -> ProviderRecord:
    """Return a provider. Raises PROVIDER_NOT_FOUND."""
    record = (await service.index.current()).record(uuid)
    if record is None:
        raise Error(Code.PROVIDER_NOT_FOUND, f"No resource provider with uuid {uuid} found")
    return record


def shown(record: ProviderRecord) -> ProviderShown:
    """Convert a provider to its wire form."""
    provider, tags = record.provider, record.tags
    return ProviderShown(
        uuid=provider.uuid,
        name=provider.name,
        generation=provider.generation,
        parent=provider.parent,
        root=provider.root,
        inventories={
            name: _inventory_shown(one) for name, one in sorted(record.inventories.items())
        },
        traits=sorted(tags.traits),
        aggregates=sorted(tags.aggregates),
        reported={one.group: sorted(one.traits) for one in tags.reported},
        agent=provider.agent,
        withheld=None if provider.withheld is None else provider.withheld.reason,
        created_at=time_of(provider.created_at),
        updated_at=time_of(provider.updated_at),
    )


def _inventory_shown(inventory: Inventory) -> InventoryShown:
    return InventoryShown(
        total=inventory.total,
        reserved=inventory.reserved,
        min_unit=inventory.min_unit,
        max_unit=inventory.max_unit,
        step_size=inventory.step_size,
        allocation_ratio=inventory.allocation_ratio,
        offered=inventory.offered,
        used=inventory.used,
    )
