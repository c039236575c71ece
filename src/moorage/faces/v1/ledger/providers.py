"""Providers: make or change many, list, show, drain and delete them."""

from collections import Counter

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from moorage.core.errors import Code, Error
from moorage.core.ids import AggregateId, ProviderId
from moorage.core.ledger.bulk import BulkResult, ProviderSpec, Upserted
from moorage.core.ledger.capacity import largest_piece, shown_capacity
from moorage.core.ledger.inventory import InventorySpec
from moorage.core.ledger.model import Inventory, ProviderRecord
from moorage.core.ledger.search import Catalog
from moorage.faces.v1.decoding import misfit
from moorage.faces.v1.long_lists import members_of, parts_of
from moorage.faces.v1.routing import Handlers, Request
from moorage.service.app import Service
from moorage.service.fair_turns import Pieces
from moorage.service.ids import ids_with
from moorage.service.ledger.bulk import providers_upsert
from moorage.service.ledger.operator_cases import ProviderDrain, ProviderRemove
from moorage.service.pages import page_of, rows_to_read
from moorage.service.values import time_of, uuid_of
from moorage.wire.ledger import (
    InventoryWanted,
    ProviderOutcome,
    ProviderOutcomes,
    ProviderWanted,
)
from moorage.wire.operations import ledger as operations
from moorage.wire.providers import (
    DeleteAsked,
    DrainRequest,
    InventoryShown,
    ProviderPage,
    ProvidersAsked,
    ProviderShown,
)


class Envelope(Struct, forbid_unknown_fields=True):
    """`wire.ledger.ProvidersWanted` with its providers left raw: they are decoded separately."""

    providers: list[Raw]
    create_vocabulary: bool | UnsetType = UNSET


async def upsert(request: Request[bytes, None]) -> ProviderOutcomes:
    """Create or update every provider that differs from its description."""
    service, pieces = request.service, Pieces(request.service.turns)
    specs, teach = await _described(request.body, pieces)
    done = await providers_upsert(
        service.index, service.transactor, pieces, request.actor, specs, teach
    )
    return await _shown(done, pieces)


async def page(request: Request[None, ProvidersAsked]) -> ProviderPage:
    """Return a page of providers, ordered by UUID."""
    asked, service = request.parameters, request.service
    prefix = "" if asked.id_prefix is None else ids_with(asked.id_prefix)[0]
    as_of = await service.watch.now()  # read first: later changes are then sent again by the watch
    following: str | None = None
    if asked.tree is not None:
        fleet = await service.index.current()
        uuids, following = _tree_page(fleet, asked, prefix)
        if asked.name is not None:
            uuids = [uuid for uuid in uuids if uuid == fleet.named(asked.name)]
    elif asked.name is None:
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


def _tree_page(
    fleet: Catalog, asked: ProvidersAsked, prefix: str
) -> tuple[list[ProviderId], str | None]:
    """Return a page of a tree, and the cursor of the next one. Raises PROVIDER_NOT_FOUND."""
    top = _uuid(asked.tree or "")
    rows_max, after = rows_to_read(asked.limit), asked.cursor or ""
    members = fleet.tree_of(top)
    if not members:
        raise _missing(top)
    wanted = sorted(uuid for uuid in members if uuid > after and uuid.startswith(prefix))
    return page_of(wanted[:rows_max], asked.limit, lambda uuid: uuid)


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
    operations.UPSERT_PROVIDERS: upsert,
    operations.LIST_PROVIDERS: page,
    operations.GET_PROVIDER: read,
    operations.DRAIN_PROVIDER: drain,
    operations.RESUME_PROVIDER: resume,
    operations.DELETE_PROVIDER: delete,
}


async def _shown(answers: list[Upserted], pieces: Pieces) -> ProviderOutcomes:
    """Convert the outcomes to their wire form."""
    results = [_outcome(each) async for each in pieces.each(answers)]
    counts = Counter(each.outcome for each in answers)
    return ProviderOutcomes(results=results, **{kind.value: counts[kind] for kind in BulkResult})


def _outcome(answer: Upserted) -> ProviderOutcome:
    refusal = answer.refusal
    return ProviderOutcome(
        uuid=answer.uuid,
        outcome=answer.outcome.value,
        generation=answer.generation,
        code=None if refusal is None else refusal.code.value,
        message=None if refusal is None else refusal.message,
    )


async def _described(body: bytes, pieces: Pieces) -> tuple[list[ProviderSpec], bool]:
    """Decode a body: the described providers, and whether to create unknown classes and traits.

    Raises RefusalError, and `Error`: LIMIT_EXCEEDED.
    """
    parts = await parts_of(body, pieces, "providers", _envelope)
    envelope = _envelope(parts.around)
    described = members_of(body, parts, pieces, ProviderWanted, _spec)
    return [spec async for spec in described], envelope.create_vocabulary is True


def _envelope(around: bytes) -> Envelope:
    """Decode the body without its providers. Raises RefusalError."""
    try:
        envelope = msgspec.json.decode(around, type=Envelope)
    except RecursionError:
        raise misfit("it is nested too deeply") from None
    except ValueError as error:
        raise misfit(str(error)) from None
    # No key contains a colon, so any further colon means a repeated key.
    if around.count(b":") != 1 + (envelope.create_vocabulary is not UNSET):
        raise misfit("a key is given more than once")
    return envelope


def _spec(wanted: ProviderWanted) -> ProviderSpec:
    parent = wanted.parent
    return ProviderSpec(
        uuid=_provider(wanted.uuid, "uuid"),
        name=wanted.name,
        parent=UNSET if parent == "" else None if parent is None else _provider(parent, "parent"),
        inventories=None
        if wanted.inventories is None
        else {name: inventory_of(each) for name, each in wanted.inventories.items()},
        traits=None if wanted.traits is None else frozenset(wanted.traits),
        aggregates=None
        if wanted.aggregates is None
        else frozenset(AggregateId(uuid_of(each, "An aggregate")) for each in wanted.aggregates),
    )


def _provider(text: str, what: str) -> ProviderId:
    return ProviderId(uuid_of(text, what))


def inventory_of(wanted: InventoryWanted) -> InventorySpec:
    """Convert the description of an inventory."""
    return InventorySpec(
        wanted.total,
        wanted.reserved,
        wanted.min_unit,
        wanted.max_unit,
        wanted.step_size,
        wanted.allocation_ratio,
    )


def _uuid(text: str) -> ProviderId:
    return ProviderId(uuid_of(text, "A provider"))


async def _record(service: Service, uuid: ProviderId) -> ProviderRecord:
    """Return a provider. Raises PROVIDER_NOT_FOUND."""
    record = (await service.index.current()).record(uuid)
    if record is None:
        raise _missing(uuid)
    return record


def _missing(uuid: ProviderId) -> Error:
    return Error(Code.PROVIDER_NOT_FOUND, f"No resource provider with uuid {uuid} found")


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
    units = shown_capacity(inventory)
    return InventoryShown(
        total=inventory.total,
        reserved=inventory.reserved,
        min_unit=inventory.min_unit,
        max_unit=inventory.max_unit,
        step_size=inventory.step_size,
        allocation_ratio=inventory.allocation_ratio,
        offered=inventory.offered,
        used=inventory.used,
        capacity=units,
        free=largest_piece(units, inventory.used, units),
    )
