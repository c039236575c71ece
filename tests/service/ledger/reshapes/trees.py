"""A host with units of a class and guests on them, and plans that split it over children."""

from collections.abc import Iterable, Mapping
from typing import Any

from moorage.core.ids import ConsumerId, ProviderId
from moorage.core.ledger.allocations import ConsumerRequest
from moorage.core.ledger.inventory import InventorySpec
from moorage.core.ledger.model import ProviderRecord
from moorage.core.ledger.reshaping.effects import AllocationsSet
from moorage.core.ledger.reshaping.plan import Generations, Move, NewProvider, Place, ReshapePlan
from moorage.core.ledger.reshaping.planning import Planned
from moorage.service.app import Service
from moorage.service.ledger import provider_cases
from moorage.service.ledger.allocation_cases import AllocationsReplace
from moorage.service.ledger.reshapes import Committed, Preview, Wish, request_of, task_of
from tests.service.running import TESTER, claim, consumer_id, provider_id

HOST, LEFT, RIGHT, OTHER = map(provider_id, range(1, 5))
CHILDREN = (LEFT, RIGHT)

TRAIT = "STORAGE_DISK_SSD"


async def host(service: Service, guests: Mapping[int, int], total: int = 16) -> None:
    """Create the host with units of VCPU and DISK_GB, and guests with units of VCPU by number."""
    await service.transactor.submit(provider_cases.ProviderCreate(HOST, "host"))
    specs = {"VCPU": InventorySpec(total), "DISK_GB": InventorySpec(1_000)}
    await service.transactor.submit(provider_cases.InventoriesReplace(HOST, 0, specs))
    for n, units in guests.items():
        await service.transactor.submit(claim(n, HOST, VCPU=units))


def split(
    assign: Mapping[int, ProviderId | Mapping[ProviderId, int]],
    units: Mapping[int, int],
    *,
    total: int = 8,
    **more: Any,
) -> ReshapePlan:
    """Return the plan that moves the units of the host to two children with as many each.

    `assign` says where a guest goes, of which `units` has the amount.
    """
    where = {
        consumer_id(n): {place: units[n]} if isinstance(place, str) else dict(place)
        for n, place in assign.items()
    }
    return ReshapePlan(
        create=tuple(NewProvider(uuid, f"child-{uuid}", HOST) for uuid in CHILDREN),
        moves=tuple(
            Move(Place(HOST, "VCPU"), Place(uuid, "VCPU"), total, where) for uuid in CHILDREN
        ),
        traits={LEFT: frozenset({TRAIT})},
        **more,
    )


def wish(n: int = 1, digest: str | None = None, asked: object = "a plan") -> Wish:
    """Return the n-th wish."""
    return Wish(f"{n:08d}-5555-4555-8555-555555555555", request_of(asked), digest, "a reason")


async def preview(service: Service, plan: ReshapePlan) -> Preview:
    """Return the preview of a plan."""
    return await service.reshapes.preview(task_of(plan))


async def commit(
    service: Service, plan: ReshapePlan, n: int = 1, digest: str | None = None
) -> Committed:
    """Commit a plan as the n-th reshape."""
    return await service.reshapes.carry_out(plan, wish(n, digest, plan), TESTER)


async def undo(service: Service, undone: int, n: int) -> Committed:
    """Undo a reshape by the n-th one."""
    return await service.reshapes.undo(wish(undone).id, wish(n, None, ("undo", undone)), TESTER)


async def records(service: Service) -> dict[ProviderId, ProviderRecord]:
    """Return all providers of the host's tree, and the host's."""
    catalog = await service.index.current()
    found = {uuid: catalog.record(uuid) for uuid in (HOST, *CHILDREN, OTHER)}
    return {uuid: record for uuid, record in found.items() if record is not None}


async def state(service: Service, guests: Iterable[int]) -> dict[str, Any]:
    """Return the shape and who uses what, without generations and times."""
    shape: dict[str, Any] = {
        uuid: (
            record.provider.name,
            record.provider.parent,
            {name: (one.total, one.reserved, one.used) for name, one in record.inventories.items()},
            record.tags.traits,
        )
        for uuid, record in (await records(service)).items()
    }
    for n in guests:
        consumer = await service.reads.consumer(consumer_id(n))
        shape[consumer_id(n)] = None if consumer is None else consumer.allocations
    return shape


def reallocated(planned: Planned) -> set[ConsumerId]:
    """Return the consumers whose allocations a plan changes."""
    return {one.consumer for one in planned.effects if isinstance(one, AllocationsSet)}


def expecting(plan: ReshapePlan, generations: Generations) -> ReshapePlan:
    """Return a plan that is refused if anything has another generation."""
    import msgspec

    return msgspec.structs.replace(plan, expect=generations)


def elsewhere(n: int, places: Mapping[ProviderId, dict[str, int]], generation: int) -> Any:
    """Return a command that replaces the allocations of a guest."""
    request = ConsumerRequest(
        consumer_id(n), dict(places), "project", "user", "INSTANCE", generation
    )
    return AllocationsReplace([request])
