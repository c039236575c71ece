"""The final state of a reshape: what forbids it, and the changes that lead to it.

Only the final state is judged, so inventories and allocations may move together. Capacity is that
of records: what agents and drains withhold does not matter. More in use than fits is allowed where
it was so before and does not grow.
"""

from collections.abc import Iterator, Mapping
from functools import cached_property
from math import ceil, floor

from msgspec.structs import replace

from moorage.core.clock import Instant
from moorage.core.errors import Error
from moorage.core.ids import ConsumerId, ProviderId
from moorage.core.ledger import allocations, inventory
from moorage.core.ledger.allocations import KEEP, ConsumerRequest, Shift
from moorage.core.ledger.capacity import capacity, units_ok
from moorage.core.ledger.facts import Changes, Facts
from moorage.core.ledger.inventory import Images, InventorySpec
from moorage.core.ledger.model import NO_TAGS, Consumer, Provider
from moorage.core.ledger.providers import touched
from moorage.core.ledger.reshaping.shape import Forest, providers_after
from moorage.core.ledger.reshaping.violations import Violation, ViolationCode
from moorage.core.ledger.reshaping.wanted import Key, Owner, Wanted, holders_by_place, spec_of
from moorage.core.limits import AGGREGATES_MAX


class FinalState:
    """What is wanted, seen together with what stays."""

    def __init__(self, facts: Facts, wanted: Wanted) -> None:
        self.facts = facts
        self.wanted = wanted
        self.forest = Forest(facts, wanted)
        self.requests = [
            _request(facts.consumers.get(uuid), uuid, wanted) for uuid in sorted(wanted.allocations)
        ]
        self.shift = allocations.shift_of(facts, self.requests)

    def spec_of(self, key: Key) -> InventorySpec | None:
        """Return the final figures of a place; None: there is no inventory."""
        if key in self.wanted.figures:
            return self.wanted.figures[key]
        held = self.facts.inventories_of(key[0]).get(key[1])
        return None if held is None else spec_of(held)

    def used_at(self, key: Key) -> int:
        """Return how many units are in use at a place in the end."""
        held = self.facts.inventories_of(key[0]).get(key[1])
        return (0 if held is None else held.used) + self.shift.net(key)

    @cached_property
    def changed(self) -> dict[ConsumerId, list[Key]]:
        """The places, sorted, where the amounts of consumers change."""
        found = {}
        for request in self.requests:
            held = self.facts.consumers.get(request.consumer)
            before, after = _flat(held.allocations if held else {}), _flat(request.allocations)
            keys = [key for key in before.keys() | after if before.get(key) != after.get(key)]
            found[request.consumer] = sorted(keys)
        return found

    @cached_property
    def places(self) -> list[Key]:
        """The places, sorted, with other figures or another usage."""
        shifted = {key for keys in self.changed.values() for key in keys}
        return sorted(shifted | self.wanted.figures.keys())

    @cached_property
    def _held_at(self) -> dict[Key, list[ConsumerId]]:
        return holders_by_place(self.facts)

    @cached_property
    def _changed_at(self) -> dict[Key, list[ConsumerId]]:
        found: dict[Key, list[ConsumerId]] = {}
        for consumer, keys in self.changed.items():
            for key in keys:
                found.setdefault(key, []).append(consumer)
        return found

    def amount_at(self, consumer: ConsumerId, key: Key) -> int:
        """Return how many units a consumer has at a place in the end."""
        after = self.wanted.allocations.get(consumer)
        if after is None:
            held = self.facts.consumers.get(consumer)
            after = held.allocations if held else {}
        return after.get(key[0], {}).get(key[1], 0)

    def holders_of(self, key: Key) -> list[tuple[ConsumerId, int]]:
        """Return who has units at a place in the end, as far as that is loaded; sorted."""
        if not self.used_at(key):
            return []
        known = {*self._held_at.get(key, ()), *self._changed_at.get(key, ())}
        amounts = ((uuid, self.amount_at(uuid, key)) for uuid in sorted(known))
        return [(uuid, amount) for uuid, amount in amounts if amount]


def judged(state: FinalState) -> Iterator[Violation]:
    """Yield what forbids inventories, tags and allocations of the final state."""
    yield from _words(state)
    if not state.wanted.restores:
        yield from _figures(state)
        yield from _units(state)
    for key in state.places:
        if key not in state.wanted.unsettled:
            yield from _room(state, key)


def over(spec: InventorySpec | None, used: int) -> float:
    """Return how many units more are in use than fit; negative: there is room."""
    if spec is None:
        return used
    return used - capacity(spec.total, spec.reserved, spec.allocation_ratio)


def excess_before(facts: Facts, key: Key) -> float:
    """Return how many units more than fit are in use now; at least 0."""
    held = facts.inventories_of(key[0]).get(key[1])
    return 0 if held is None else max(over(spec_of(held), held.used), 0)


def room_at(state: FinalState, key: Key) -> int:
    """Return how many more units fit at a place; negative: too many are used there."""
    allowed = max(excess_before(state.facts, key), state.wanted.excess.get(key, 0))
    return floor(allowed - over(state.spec_of(key), state.used_at(key)))


def _words(state: FinalState) -> Iterator[Violation]:
    for (uuid, name), spec in sorted(state.wanted.figures.items()):
        if spec is not None and not state.facts.has_class(name):
            message = f"Resource class {name} does not exist."
            yield Violation(ViolationCode.CLASS_UNKNOWN, message, uuid, name)
    for uuid, tags in sorted(state.wanted.tags.items()):
        for trait in sorted(tags.traits - state.facts.tags_of(uuid).traits):
            if not state.facts.has_trait(trait):
                message = f"Trait {trait} does not exist."
                yield Violation(ViolationCode.TRAIT_UNKNOWN, message, uuid)
        many = len(tags.aggregates)
        if many > AGGREGATES_MAX:
            message = (
                f"Provider {uuid} would be in {many} aggregates; {AGGREGATES_MAX} are allowed."
            )
            yield Violation(ViolationCode.AGGREGATES_EXCEEDED, message, uuid, amount=many)


def _figures(state: FinalState) -> Iterator[Violation]:
    for (uuid, name), spec in sorted(state.wanted.figures.items()):
        if spec is None or (uuid, name) in state.wanted.unsettled:
            continue
        try:
            inventory.check_reserved(uuid, name, spec, full_reserve=True)
        except Error as refusal:
            yield Violation(ViolationCode.FIGURES_INVALID, refusal.message, uuid, name)


def _units(state: FinalState) -> Iterator[Violation]:
    for consumer, keys in state.changed.items():
        for uuid, name in keys:
            amount, spec = state.amount_at(consumer, (uuid, name)), state.spec_of((uuid, name))
            if not amount or spec is None or (uuid, name) in state.wanted.unsettled:
                continue
            if not units_ok(spec.min_unit, spec.max_unit, spec.step_size, amount):
                message = (
                    f"Consumer {consumer} would have {amount} of {name} on provider {uuid}, which"
                    " its unit sizes forbid."
                )
                yield Violation(ViolationCode.UNITS, message, uuid, name, consumer, amount)


def _room(state: FinalState, key: Key) -> Iterator[Violation]:
    """Yield what does not fit at one place."""
    uuid, name = key
    wanted, spec, used = state.wanted, state.spec_of(key), state.used_at(key)
    allowed = max(excess_before(state.facts, key), wanted.excess.get(key, 0))
    if key in wanted.residual:
        missing, allowed = over(_unreserved(spec), used), _shortage_before(state.facts, key)
        code, message = ViolationCode.RESIDUAL_SHORT, "{} more units of {} must stay on {}."
    elif key in wanted.unused_only:
        missing = over(spec, used)
        code, message = ViolationCode.SOURCE_IN_USE, "{} of the units of {} that leave {} are used."
    elif spec is None:
        yield from _lost(state, key)
        return
    else:
        missing = over(spec, used)
        code, message = ViolationCode.CAPACITY, "{} more units of {} than fit would be used on {}."
    if spec is None and used:
        allowed = 0
    if used and missing > max(allowed, 0):
        units = ceil(missing)
        text = message.format(units, name, f"provider {uuid}")
        yield Violation(code, text, uuid, name, amount=units)


def _unreserved(spec: InventorySpec | None) -> InventorySpec | None:
    return None if spec is None else replace(spec, reserved=0)


def _shortage_before(facts: Facts, key: Key) -> float:
    held = facts.inventories_of(key[0])[key[1]]
    return over(_unreserved(spec_of(held)), held.used)


def _lost(state: FinalState, key: Key) -> Iterator[Violation]:
    """Yield everybody at a place that has no inventory in the end."""
    uuid, name = key
    gone = key in state.wanted.figures
    unnamed = state.used_at(key)
    for consumer, amount in state.holders_of(key):
        unnamed -= amount
        if gone:
            message = f"Consumer {consumer} uses {amount} of {name} on provider {uuid}, which goes."
            yield Violation(ViolationCode.IN_USE, message, uuid, name, consumer, amount)
        else:
            message = f"Provider {uuid} has no inventory of {name} for consumer {consumer}."
            yield Violation(ViolationCode.INVENTORY_MISSING, message, uuid, name, consumer, amount)
    if unnamed > 0:
        message = f"{unnamed} of {name} on provider {uuid}, which goes, are used."
        yield Violation(ViolationCode.IN_USE, message, uuid, name, amount=unnamed)


def written(state: FinalState, now: Instant) -> Changes:
    """Return the changes that lead to a final state without violations.

    The generation of everything that changes rises by one; that of members of moved subtrees stays.
    """
    facts, wanted = state.facts, state.wanted
    after = providers_after(facts, now, wanted, state.forest)
    for uuid in _touched(state):
        after[uuid] = touched(after.get(uuid) or facts.providers[uuid], now)
    images = _images(state, after, now)
    changes = carried_out(facts, now, after, images, state.requests, state.shift)
    for consumer, owner in wanted.owners.items():
        made = changes.consumers.get(consumer)
        if made is not None and consumer not in facts.consumers:
            changes.consumers[consumer] = replace(made, created_at=owner.created_at)
    gone = [uuid for uuid, provider in after.items() if provider is None]
    changes.tags = {uuid: replace(tags, updated_at=now) for uuid, tags in wanted.tags.items()}
    changes.tags.update(dict.fromkeys(gone, NO_TAGS))
    return changes


def carried_out(
    facts: Facts,
    now: Instant,
    providers: Mapping[ProviderId, Provider | None],
    images: Images,
    requests: list[ConsumerRequest],
    shift: Shift,
) -> Changes:
    """Return the changes of new inventories together with new allocations.

    Args:
        facts: before the change.
        now: the time of the first consumer.
        providers: all after-images, with raised generations where a consumer comes or goes.
        images: the inventories with other figures, still with their present usage.
        requests: the complete new allocations of consumers.
        shift: of the requests.
    """
    changes = Changes(providers=dict(providers), inventories=images)
    stock = allocations.stock_of(facts.inventories, shift)
    stock.update({key: image for key, image in images.items() if image is not None})
    stock = {key: held for key, held in stock.items() if images.get(key, held) is not None}
    by_provider: dict[ProviderId, Images] = {}
    for key, image in images.items():
        by_provider.setdefault(key[0], {})[key] = image
    for uuid, own in by_provider.items():
        if uuid in facts.providers:
            changes.overwritten.update(inventory.overwritten(facts, uuid, own))
    changes.inventories.update(allocations.used_after(shift, stock))
    changes.consumers = allocations.consumers_after(facts, now, requests)
    changes.places = allocations.places_after(facts, requests, changes)
    return changes


def _images(state: FinalState, after: Mapping[ProviderId, Provider | None], now: Instant) -> Images:
    facts, images = state.facts, Images()
    for uuid, provider in after.items():
        before = facts.providers.get(uuid)
        if provider is None or before is None or provider.withheld == before.withheld:
            continue
        for name, held in facts.inventories_of(uuid).items():
            if held.withheld != (provider.withheld is not None):
                images[uuid, name] = replace(held, withheld=provider.withheld is not None)
    for (uuid, name), spec in state.wanted.figures.items():
        provider = after[uuid]
        if spec is None or provider is None:
            images[uuid, name] = None
        else:
            present = facts.inventories_of(uuid).get(name)
            images[uuid, name] = inventory.stored(provider, spec, present, now)
    return images


def _touched(state: FinalState) -> list[ProviderId]:
    """Return the providers, sorted, whose generation rises: those that get or lose anything."""
    wanted, facts = state.wanted, state.facts
    found = {uuid for uuid, _ in state.places} | wanted.tags.keys()
    found.update(uuid for uuid in wanted.providers if uuid in facts.providers)
    return sorted(uuid for uuid in found if state.forest.exists(uuid))


def _request(held: Consumer | None, uuid: ConsumerId, wanted: Wanted) -> ConsumerRequest:
    after = wanted.allocations[uuid]
    if held is None:
        owner: Owner = wanted.owners[uuid]
        return ConsumerRequest(uuid, after, owner.project_id, owner.user_id, owner.consumer_type)
    return ConsumerRequest(uuid, after, held.project_id, held.user_id, KEEP)


def _flat(held: Mapping[ProviderId, Mapping[str, int]]) -> dict[Key, int]:
    return {(uuid, name): n for uuid, amounts in held.items() for name, n in amounts.items()}
