"""Lists of providers, page by page."""

from moorage.core.ledger.model import Inventory, ProviderRecord
from moorage.faces.v1.routing import Request, Route
from moorage.service.access.roles import Role
from moorage.service.native.encoding import time_of
from moorage.wire.pages import PageAsked
from moorage.wire.providers import InventoryShown, ProviderPage, ProviderShown


async def page(request: Request[None, PageAsked]) -> ProviderPage:
    """Return a page of providers, ordered by UUID."""
    asked, service = request.parameters, request.service
    as_of = await service.watch.now()  # read first: later changes are then sent again by the watch
    uuids, following = await service.reads.providers_page(asked.cursor, asked.limit)
    fleet = await service.index.current()
    records = [record for uuid in uuids if (record := fleet.record(uuid)) is not None]
    return ProviderPage(
        providers=[shown(record) for record in records], next=following, as_of=str(as_of)
    )


ROUTES = (
    Route(
        method="GET",
        path="/v1/providers",
        role=Role.READER,
        summary="List providers by UUID, with inventories, usages, traits and aggregates.",
        handler=page,
        parameters=PageAsked,
        answer=ProviderPage,
    ),
)


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
