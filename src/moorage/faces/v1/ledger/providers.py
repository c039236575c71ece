"""Bulk upsert: creates or updates many providers in one request."""

from collections import Counter

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from moorage.core.ids import AggregateId, ProviderId
from moorage.core.ledger.bulk import BulkResult, ProviderSpec, Upserted
from moorage.core.ledger.inventory import InventorySpec
from moorage.faces.v1.long_lists import members_of, misfit, parts_of
from moorage.faces.v1.routing import Handlers, Request
from moorage.service.fair_turns import Pieces
from moorage.service.ledger.bulk import providers_upsert
from moorage.service.values import uuid_of
from moorage.wire.ledger import (
    InventoryWanted,
    ProviderOutcome,
    ProviderOutcomes,
    ProviderWanted,
)
from moorage.wire.operations import ledger as operations


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


HANDLERS: Handlers = {
    operations.UPSERT_PROVIDERS: upsert,
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
