"""Allocations of consumers. They are replaced per consumer, all or nothing.

Source: Placement API reference, "Allocations". One deliberate difference: "not worse than before"
compares with the usage before the request, and never counts the request's own rows.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from moorage.core.clock import Instant
from moorage.core.errors import Code, Error
from moorage.core.ids import ConsumerId, ProviderId
from moorage.core.ledger.capacity import has_room, may_record, units_ok
from moorage.core.ledger.facts import Changes, Facts, Keys
from moorage.core.ledger.model import Allocations, Consumer, Inventory
from moorage.core.ledger.providers import touched
from moorage.core.ledger.vocabulary import customs


class _Sentinel(Enum):
    ANY = "any"
    KEEP = "keep"


ANY: Final = _Sentinel.ANY
"""The caller does not give the consumer generation that it has seen (before 1.28)."""

KEEP: Final = _Sentinel.KEEP
"""The caller's dialect has no consumer types: keep the stored one (before 1.38)."""


class ConsumerRequest(Struct, frozen=True):
    """The complete new allocations of one consumer; if empty, all are removed.

    `generation` is the one the caller has seen: None for a consumer that must not exist yet.
    """

    consumer: ConsumerId
    allocations: Allocations
    project_id: str
    user_id: str
    consumer_type: str | Literal[_Sentinel.KEEP] | None = KEEP
    generation: int | Literal[_Sentinel.ANY] | None = ANY


Stock = dict[tuple[ProviderId, str], Inventory]
"""The inventories that requests touch, by provider and class."""

Offers = Mapping[ProviderId, Mapping[str, Inventory]]
"""All inventories of some providers; in a reshape they differ from those of the facts."""

_NOTHING: Final[Mapping[str, Inventory]] = {}


class Shift(Struct):
    """The amounts that requests take and give back, per provider and class."""

    taken: dict[tuple[ProviderId, str], int] = {}
    given: dict[tuple[ProviderId, str], int] = {}

    def net(self, key: tuple[ProviderId, str]) -> int:
        """Return the increase of this inventory's usage; it may be negative."""
        return self.taken.get(key, 0) - self.given.get(key, 0)


class MisfitError(Error):
    """An inventory does not admit the requested amount, or does not exist.

    This stays so as long as the inventory is unchanged and its usage does not fall.
    """

    def __init__(self, code: Code, message: str, provider: ProviderId, resource_class: str) -> None:
        super().__init__(code, message)
        self.provider = provider
        self.resource_class = resource_class


def replace_for(facts: Facts, now: Instant, requests: list[ConsumerRequest]) -> Changes:
    """Replace the allocations of every consumer by those of its request.

    Raises CONSUMER_GENERATION, PROVIDER_UNKNOWN, CLASS_UNKNOWN, INVENTORY_MISSING,
    UNITS_VIOLATED, CAPACITY_EXCEEDED.
    """
    check_consumers(facts, requests)
    check_providers(facts, requests)
    check_classes(facts, requests)
    shift = shift_of(facts, requests)
    stock = stock_of(facts.inventories, shift)
    check_offers(facts.inventories, shift, stock)
    check_room(requests, shift, stock)
    changes = Changes(
        consumers=consumers_after(facts, now, requests), inventories=used_after(shift, stock)
    )
    for uuid in providers_touched(facts, requests):
        changes.providers[uuid] = touched(facts.providers[uuid], now)
    changes.places = places_after(facts, requests, changes)
    return changes


def delete_for(facts: Facts, now: Instant, consumer: ConsumerId) -> Changes:
    """Remove all allocations of a consumer; provider generations stay the same.

    Raises ALLOCATIONS_NOT_FOUND.
    """
    held = facts.consumers.get(consumer)
    if held is None:
        raise Error(Code.ALLOCATIONS_NOT_FOUND, f"No allocations for consumer '{consumer}'")
    nothing = ConsumerRequest(consumer, {}, held.project_id, held.user_id)
    shift = shift_of(facts, [nothing])
    stock = stock_of(facts.inventories, shift)
    return Changes(consumers={consumer: None}, inventories=used_after(shift, stock))


def check_consumers(facts: Facts, requests: list[ConsumerRequest]) -> None:
    """Raise CONSUMER_GENERATION unless every request has its consumer's current generation."""
    for request in requests:
        if request.generation is ANY:
            continue
        stored = facts.consumers.get(request.consumer)
        expected = stored.generation if stored else None
        if request.generation != expected:
            shown = "null" if expected is None else expected
            raise Error(
                Code.CONSUMER_GENERATION,
                f"consumer generation conflict - expected {shown} but got {request.generation}",
            )


def check_providers(facts: Facts, requests: list[ConsumerRequest]) -> None:
    """Raise PROVIDER_UNKNOWN if a request names a provider that does not exist."""
    for request in requests:
        for uuid, amounts in request.allocations.items():
            if uuid not in facts.providers:
                raise MisfitError(
                    Code.PROVIDER_UNKNOWN,
                    f"Allocation for resource provider '{uuid}' that does not exist.",
                    uuid,
                    next(iter(amounts), "none"),
                )


def check_classes(facts: Facts, requests: list[ConsumerRequest]) -> None:
    """Raise CLASS_UNKNOWN if a request names a resource class that does not exist."""
    for request in requests:
        for uuid, amounts in request.allocations.items():
            if amounts.keys() <= facts.standard_classes:
                continue
            for name in amounts:
                if not facts.has_class(name):
                    raise MisfitError(
                        Code.CLASS_UNKNOWN, f"No such resource class {name}.", uuid, name
                    )


def shift_of(facts: Facts, requests: list[ConsumerRequest]) -> Shift:
    """Add up the new allocations of all requests, and the present ones of their consumers."""
    shift = Shift()
    for request in requests:
        _add(shift.taken, request.allocations)
        held = facts.consumers.get(request.consumer)
        if held is not None:
            _add(shift.given, held.allocations)
    return shift


def stock_of(offers: Offers, shift: Shift) -> Stock:
    """Return the inventories that a shift touches, as far as they exist."""
    stock: Stock = {}
    for key in shift.taken | shift.given:
        inventory = offers.get(key[0], _NOTHING).get(key[1])
        if inventory is not None:
            stock[key] = inventory
    return stock


def check_offers(offers: Offers, shift: Shift, stock: Stock) -> None:
    """Raise INVENTORY_MISSING for a provider that offers no class that any request asks for."""
    if shift.taken.keys() <= stock.keys():
        return
    wanted = {name for _, name in shift.taken}
    for uuid, name in shift.taken:
        if (uuid, name) not in stock and wanted.isdisjoint(offers.get(uuid, _NOTHING)):
            raise _missing(uuid, name)


def check_room(
    requests: list[ConsumerRequest], shift: Shift, stock: Stock, *, recording: bool = False
) -> None:
    """Raise INVENTORY_MISSING, UNITS_VIOLATED or CAPACITY_EXCEEDED for amounts that do not fit.

    The amounts are added up in order, and the first one without room is reported. Usage that is
    already over capacity may stay or fall. `recording`: the amounts exist already, so it does not
    matter whether they are offered.
    """
    fits = may_record if recording else has_room
    taken: dict[tuple[ProviderId, str], int] = {}
    for request in requests:
        for uuid, amounts in request.allocations.items():
            for name, amount in amounts.items():
                key = uuid, name
                inventory = stock.get(key)
                if inventory is None:
                    raise _missing(uuid, name)
                if not units_ok(
                    inventory.min_unit, inventory.max_unit, inventory.step_size, amount
                ):
                    raise _refused(Code.UNITS_VIOLATED, name, uuid, "violate inventory constraints")
                taken[key] = taken.get(key, 0) + amount
                net = taken[key] - shift.given.get(key, 0)
                if net > 0 and not fits(inventory, net):
                    raise _refused(Code.CAPACITY_EXCEEDED, name, uuid, "exceed the capacity")


def consumers_after(
    facts: Facts, now: Instant, requests: list[ConsumerRequest]
) -> dict[ConsumerId, Consumer | None]:
    """Return the consumers' after-images, in order; consumers without allocations are deleted."""
    after: dict[ConsumerId, Consumer | None] = {}
    for number, request in enumerate(requests):
        if request.allocations or request.consumer in facts.consumers:
            after[request.consumer] = _consumer_after(facts, Instant(now + number), request)
    return after


def places_after(
    facts: Facts, requests: list[ConsumerRequest], changes: Changes
) -> dict[tuple[ProviderId, ConsumerId], int]:
    """Return the generations of the providers where consumers get their first allocations.

    They give the consumers of each provider an order, in which a machine starts them.
    """
    places: dict[tuple[ProviderId, ConsumerId], int] = {}
    for request in requests:
        held = facts.consumers.get(request.consumer)
        for uuid in request.allocations:
            if held is not None and uuid in held.allocations:
                continue
            after = changes.providers[uuid]
            if after is not None:
                places[uuid, request.consumer] = after.generation
    return places


def used_after(shift: Shift, stock: Stock) -> dict[tuple[ProviderId, str], Inventory | None]:
    """Return the inventories whose usage changes, with their new usage."""
    taken, given = shift.taken, shift.given
    changed: dict[tuple[ProviderId, str], Inventory | None] = {}
    for key, inventory in stock.items():
        net = taken.get(key, 0) - given.get(key, 0)  # as `Shift.net`
        if net:
            changed[key] = replace(inventory, used=inventory.used + net)
    return changed


def providers_touched(facts: Facts, requests: list[ConsumerRequest]) -> set[ProviderId]:
    """Return providers whose generation rises: of the new allocations, or of removed consumers."""
    found: set[ProviderId] = set()
    for request in requests:
        found.update(request.allocations)
        held = facts.consumers.get(request.consumer)
        if not request.allocations and held is not None:
            found.update(held.allocations)
    return found


def _consumer_after(facts: Facts, now: Instant, request: ConsumerRequest) -> Consumer | None:
    if not request.allocations:
        return None
    before = facts.consumers.get(request.consumer)
    kept = before.consumer_type if before else None
    return Consumer(
        uuid=request.consumer,
        generation=before.generation + 1 if before else 1,
        project_id=request.project_id,
        user_id=request.user_id,
        consumer_type=kept if request.consumer_type is KEEP else request.consumer_type,
        allocations=request.allocations,
        created_at=before.created_at if before else now,
        updated_at=now,
    )


def _add(sums: dict[tuple[ProviderId, str], int], allocations: Allocations) -> None:
    for uuid, amounts in allocations.items():
        for name, amount in amounts.items():
            sums[uuid, name] = sums.get((uuid, name), 0) + amount


def _missing(uuid: ProviderId, name: str) -> MisfitError:
    message = f"Inventory for '{name}' on resource provider '{uuid}' invalid."
    return MisfitError(Code.INVENTORY_MISSING, message, uuid, name)


def _refused(code: Code, name: str, uuid: ProviderId, why: str) -> MisfitError:
    message = (
        f"Unable to create allocation for '{name}' on "
        f"resource provider '{uuid}'. The requested amount would {why}."
    )
    return MisfitError(code, message, uuid, name)


def keys_for(requests: list[ConsumerRequest]) -> Keys:
    """Return what must be loaded for these requests."""
    keys = Keys()
    for request in requests:
        keys.consumers.add(request.consumer)
        keys.providers.update(request.allocations)
        for amounts in request.allocations.values():
            keys.classes.update(customs(amounts))
    return keys
