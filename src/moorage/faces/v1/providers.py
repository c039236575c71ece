"""Many providers at once: each shall be as described."""

from collections import Counter
from collections.abc import Iterable
from http import HTTPStatus

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from moorage.core.ids import AggregateId, ProviderId
from moorage.core.ledger.bulk import Outcome, ProviderSpec, Upserted
from moorage.core.ledger.inventory import InventorySpec
from moorage.faces.v1.decoding import body_decode
from moorage.faces.v1.questions import uuid_of
from moorage.faces.v1.routing import Request, Route
from moorage.faces.web import RefusalError
from moorage.service.access import Role
from moorage.service.bulk import check_count, providers_upsert
from moorage.wire.ledger import (
    InventoryWanted,
    ProviderOutcome,
    ProviderOutcomes,
    ProvidersWanted,
    ProviderWanted,
)

SLICE_PROVIDERS = 50
"""Descriptions that are decoded in one turn, about 1 ms of work."""


class Envelope(Struct, forbid_unknown_fields=True):
    """`wire.ledger.ProvidersWanted` with its providers still undecoded."""

    providers: list[Raw]
    create_vocabulary: bool | UnsetType = UNSET


async def upsert(request: Request[bytes, None]) -> ProviderOutcomes:
    """Create and update what differs from its description."""
    service = request.service
    envelope = _opened(request.body)
    specs: list[ProviderSpec] = []
    for start in range(0, len(envelope.providers), SLICE_PROVIDERS):
        await service.turns.taken()
        for raw in envelope.providers[start : start + SLICE_PROVIDERS]:
            specs.append(_spec(body_decode(bytes(raw), ProviderWanted)))
    teach = envelope.create_vocabulary is True
    done = await providers_upsert(service.index, service.transactor, service.turns, specs, teach)
    answer = shown(done)
    if answer.created or answer.updated:
        counts = {kind.value: getattr(answer, kind.value) for kind in Outcome}
        described = f"{len(specs)} providers"
        await service.audit.record(request.actor, "providers.bulk", described, after=counts)
    return answer


ROUTES = (
    Route(
        method="POST",
        path="/v1/providers:bulk",
        role=Role.SERVICE,
        summary="Let many providers be as described; what is so already is left alone.",
        handler=upsert,
        body=ProvidersWanted,
        answer=ProviderOutcomes,
        bulk=True,
    ),
)


def shown(answers: Iterable[Upserted]) -> ProviderOutcomes:
    """Return the answers as they are shown."""
    results = [
        ProviderOutcome(
            uuid=each.uuid,
            outcome=each.outcome.value,
            generation=each.generation,
            code=None if each.refusal is None else each.refusal.code.value,
            message=None if each.refusal is None else each.refusal.message,
        )
        for each in answers
    ]
    counts = Counter(each.outcome for each in results)
    return ProviderOutcomes(results=results, **{kind.value: counts[kind] for kind in Outcome})


def _opened(body: bytes) -> Envelope:
    """Decode the outermost object only. Raises RefusalError."""
    try:
        envelope = msgspec.json.decode(body, type=Envelope)
    except RecursionError:
        reason = "it is nested too deeply"
    except ValueError as error:
        reason = str(error)
    else:
        names = 1 + (envelope.create_vocabulary is not UNSET)
        # Every colon is inside a provider or follows a name: more of them, and a name came twice.
        if body.count(b":") == names + sum(bytes(raw).count(b":") for raw in envelope.providers):
            check_count(len(envelope.providers))
            return envelope
        reason = "a key is given more than once"
    raise RefusalError(HTTPStatus.BAD_REQUEST, f"The body does not fit: {reason}")


def _spec(wanted: ProviderWanted) -> ProviderSpec:
    parent = wanted.parent
    return ProviderSpec(
        uuid=_provider(wanted.uuid, "uuid"),
        name=wanted.name,
        parent=UNSET if parent == "" else None if parent is None else _provider(parent, "parent"),
        inventories=None
        if wanted.inventories is None
        else {name: _inventory(each) for name, each in wanted.inventories.items()},
        traits=None if wanted.traits is None else frozenset(wanted.traits),
        aggregates=None
        if wanted.aggregates is None
        else frozenset(AggregateId(uuid_of(each, "An aggregate")) for each in wanted.aggregates),
    )


def _provider(text: str, what: str) -> ProviderId:
    return ProviderId(uuid_of(text, what))


def _inventory(wanted: InventoryWanted) -> InventorySpec:
    return InventorySpec(
        wanted.total,
        wanted.reserved,
        wanted.min_unit,
        wanted.max_unit,
        wanted.step_size,
        wanted.allocation_ratio,
    )
