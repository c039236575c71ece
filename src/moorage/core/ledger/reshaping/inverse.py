"""The way back: what a reshape did, and the final state that undoes it."""

from collections.abc import Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from moorage.core.ids import ConsumerId, LeaseId, ProviderId
from moorage.core.ledger.facts import Facts, Keys
from moorage.core.ledger.model import Allocations, Reported, Tags
from moorage.core.ledger.reshaping.effects import (
    AggregatesSet,
    AllocationsSet,
    Effect,
    InventorySet,
    ProviderCreated,
    ProviderDeleted,
    ProviderDrained,
    ProviderMoved,
    ProviderRenamed,
    TraitsSet,
)
from moorage.core.ledger.reshaping.final_state import FinalState, excess_before
from moorage.core.ledger.reshaping.shape import drained_by, drained_now, standing_of
from moorage.core.ledger.reshaping.tenants import Leases, ended, is_ended, leases_of
from moorage.core.ledger.reshaping.violations import Violation, ViolationCode
from moorage.core.ledger.reshaping.wanted import Owner, Standing, Wanted, held_at, spec_of
from moorage.core.ledger.traits_aggregates import without_vanished
from moorage.core.ledger.vocabulary import customs


class Excess(Struct, frozen=True):
    """A place on which more was used than fits; undoing may bring this back."""

    provider: ProviderId
    resource_class: str
    amount: float


class Inverse(Struct, frozen=True):
    """What undoes a reshape; it can be encoded as JSON and decoded again.

    Attributes:
        effects: those of the reshape, forwards. Undoing checks that everything is as they left it,
            and leads back to what was before.
        owners: of the consumers that the reshape removed.
        drained: why an operator had drained deleted providers themselves.
        reported: what reports had set on providers whose traits changed or that were deleted.
        excess: the places that had more in use than fits.
        leases: the granted leases of the consumers that the reshape removed, if they had one.
    """

    effects: tuple[Effect, ...]
    owners: Mapping[ConsumerId, Owner] = {}
    drained: Mapping[ProviderId, str] = {}
    reported: Mapping[ProviderId, tuple[Reported, ...]] = {}
    excess: tuple[Excess, ...] = ()
    leases: Mapping[ConsumerId, LeaseId] = {}


def keys_for(inverse: Inverse) -> Keys:
    """Return what must be loaded to plan the undoing."""
    keys = Keys()
    for effect in inverse.effects:
        if isinstance(effect, AllocationsSet):
            keys.consumers.add(effect.consumer)
            keys.trees.update(effect.before, effect.after)
            continue
        keys.trees.add(effect.provider)
        if isinstance(effect, ProviderRenamed):
            keys.names.add(effect.before)
        elif isinstance(effect, ProviderCreated | InventorySet):
            keys.holders.add(effect.provider)
        elif isinstance(effect, TraitsSet):
            keys.traits.update(customs(effect.before))
        if isinstance(effect, InventorySet):
            keys.classes.update(customs([effect.resource_class]))
        elif isinstance(effect, ProviderDeleted):
            keys.names.add(effect.name)
        above = _parent_before(effect)
        if above is not None:
            keys.trees.add(above)
    keys.providers |= keys.trees
    keys.tags |= keys.trees
    keys.created_again.update(inverse.leases)
    return keys


def losing_consumers(inverse: Inverse) -> frozenset[ConsumerId]:
    """Return the consumers whose leases must be known: those that are gone, or that lose units."""
    allocated = (one for one in inverse.effects if isinstance(one, AllocationsSet))
    losing = (one.consumer for one in allocated if one.after)
    return frozenset(inverse.owners).union(losing)


def _parent_before(effect: Effect) -> ProviderId | None:
    if isinstance(effect, ProviderMoved):
        return effect.before
    return effect.parent if isinstance(effect, ProviderDeleted) else None


def inverse_of(state: FinalState, effects: tuple[Effect, ...], leases: Leases) -> Inverse:
    """Return what undoes the change to a final state without violations."""
    facts, wanted = state.facts, state.wanted
    gone = [uuid for uuid, after in wanted.providers.items() if after is None]
    drained = {uuid: drained_by(facts.providers[uuid]) for uuid in gone}
    tagged = {uuid: facts.tags_of(uuid).reported for uuid in (*gone, *wanted.tags)}
    excess = [Excess(*key, excess_before(facts, key)) for key in state.places]
    owners = {}
    for uuid, after in wanted.allocations.items():
        if not after:
            held = facts.consumers[uuid]
            owners[uuid] = Owner(held.project_id, held.user_id, held.consumer_type, held.created_at)
    return Inverse(
        effects,
        owners,
        {uuid: reason for uuid, reason in sorted(drained.items()) if reason is not None},
        {uuid: reported for uuid, reported in sorted(tagged.items()) if reported},
        tuple(one for one in excess if one.amount > 0),
        leases_of(facts, owners, leases),
    )


class Undoing:
    """The final state before a reshape, and what has changed since it."""

    def __init__(
        self,
        facts: Facts,
        inverse: Inverse,
        leases: Leases,
        leave_out: frozenset[ConsumerId],
    ) -> None:
        self._facts = facts
        self._inverse = inverse
        self._leases = leases
        self._left_out = leave_out
        self.violations: list[Violation] = []
        self.wanted = Wanted(
            owners=inverse.owners,
            drained={**inverse.drained},
            excess={(one.provider, one.resource_class): one.amount for one in inverse.excess},
            restores=True,
        )
        self._allocations: dict[ConsumerId, Allocations] = {}
        for uuid in sorted(leave_out - inverse.owners.keys()):
            message = f"Consumer {uuid} cannot be left out: the reshape has not removed it."
            code = ViolationCode.CONSUMER_UNKNOWN
            self.violations.append(Violation(code, message, consumer=uuid))
        for effect in inverse.effects:
            self._undo(effect)
        self._clear()

    def _undo(self, effect: Effect) -> None:
        if isinstance(effect, AllocationsSet):
            self._reallocate(effect)
        elif isinstance(effect, InventorySet):
            self._restock(effect)
        elif isinstance(effect, TraitsSet | AggregatesSet):
            self._tag(effect)
        elif isinstance(effect, ProviderDrained):
            self._drain(effect)
        else:
            self._stand(effect)

    def _stand(
        self, effect: ProviderCreated | ProviderDeleted | ProviderRenamed | ProviderMoved
    ) -> None:
        uuid, wanted = effect.provider, self.wanted.providers
        present = standing_of(self._facts, uuid)
        if isinstance(effect, ProviderDeleted):
            if present is not None:
                self._changed(f"Provider {uuid} exists again.", uuid)
            wanted[uuid] = Standing(effect.name, effect.parent)
        elif present is None:
            self._changed(f"Provider {uuid} does not exist any more.", uuid)
        elif isinstance(effect, ProviderCreated):
            if present != Standing(effect.name, effect.parent):
                self._changed(f"Provider {uuid} has another name or parent now.", uuid)
            wanted[uuid] = None
        elif isinstance(effect, ProviderRenamed):
            if present.name != effect.after:
                self._changed(f"Provider {uuid} is named {present.name} now.", uuid)
            wanted[uuid] = replace(wanted.get(uuid) or present, name=effect.before)
        else:
            if present.parent != effect.after:
                self._changed(f"Provider {uuid} has another parent now.", uuid)
            wanted[uuid] = replace(wanted.get(uuid) or present, parent=effect.before)

    def _restock(self, effect: InventorySet) -> None:
        uuid, name = effect.provider, effect.resource_class
        held = self._facts.inventories_of(uuid).get(name)
        if (None if held is None else spec_of(held)) != effect.after:
            self._changed(f"The inventory of {name} on provider {uuid} differs now.", uuid, name)
        self.wanted.figures[uuid, name] = effect.before

    def _tag(self, effect: TraitsSet | AggregatesSet) -> None:
        uuid = effect.provider
        present = self._facts.tags_of(uuid)
        tags = self.wanted.tags.get(uuid, present)
        if isinstance(effect, AggregatesSet):
            if present.aggregates != set(effect.after):
                self._changed(f"Provider {uuid} is in other aggregates now.", uuid)
            self.wanted.tags[uuid] = replace(tags, aggregates=frozenset(effect.before))
            return
        if present.traits != set(effect.after):
            self._changed(f"Provider {uuid} has other traits now.", uuid)
        saved = self._inverse.reported.get(uuid, ())
        self.wanted.tags[uuid] = _reported_again(tags, frozenset(effect.before), saved)

    def _drain(self, effect: ProviderDrained) -> None:
        uuid = effect.provider
        if drained_now(self._facts, uuid) != effect.after:
            self._changed(f"Provider {uuid} is drained otherwise now, or not any more.", uuid)
        if self.wanted.providers.get(uuid, True) is not None:
            self.wanted.drained[uuid] = effect.before

    def _reallocate(self, effect: AllocationsSet) -> None:
        facts, consumer, owners = self._facts, effect.consumer, self._inverse.owners
        if consumer in owners and consumer in self._left_out:
            return
        held = facts.consumers.get(consumer)
        places = sorted({*_places(effect.before), *_places(effect.after)})
        if held is None and consumer not in owners:
            for uuid, name in places:
                message = f"Consumer {consumer} does not exist any more."
                self._changed(message, uuid, name, consumer, 0)
            return
        if held is not None and consumer in owners:
            for uuid, name in places:
                message = f"Consumer {consumer} exists again."
                self._changed(message, uuid, name, consumer, held_at(facts, consumer, (uuid, name)))
            return
        lease = self._inverse.leases.get(consumer)
        if lease is not None and is_ended(consumer, owners, lease, self._leases):
            self.violations.append(ended(consumer, lease))
        after = {uuid: dict(own) for uuid, own in held.allocations.items()} if held else {}
        for key in places:
            uuid, name = key
            present = held_at(facts, consumer, key)
            if present != effect.after.get(uuid, {}).get(name, 0):
                message = f"Consumer {consumer} has {present} of {name} on provider {uuid} now."
                self._changed(message, uuid, name, consumer, present)
            own = after.setdefault(uuid, {})
            own.pop(name, None)
            if before := effect.before.get(uuid, {}).get(name, 0):
                own[name] = before
        self.wanted.allocations[consumer] = {uuid: own for uuid, own in after.items() if own}

    def _clear(self) -> None:
        """Let created providers go with all that they have; anything that is new there counts."""
        facts, wanted = self._facts, self.wanted
        undone = {one.provider for one in self._inverse.effects if isinstance(one, TraitsSet)}
        joined = {one.provider for one in self._inverse.effects if isinstance(one, AggregatesSet)}
        for uuid in sorted(uuid for uuid, after in wanted.providers.items() if after is None):
            for name in sorted(facts.inventories_of(uuid)):
                if (uuid, name) not in wanted.figures:
                    message = f"Provider {uuid} has an inventory of {name} now."
                    self._changed(message, uuid, name)
                    wanted.figures[uuid, name] = None
            tags = facts.tags_of(uuid)
            if tags.traits and uuid not in undone:
                self._changed(f"Provider {uuid} has traits now.", uuid)
            if tags.aggregates and uuid not in joined:
                self._changed(f"Provider {uuid} is in aggregates now.", uuid)

    def _changed(
        self,
        message: str,
        provider: ProviderId,
        name: str | None = None,
        consumer: ConsumerId | None = None,
        amount: int | None = None,
    ) -> None:
        code = ViolationCode.CHANGED_SINCE
        self.violations.append(Violation(code, message, provider, name, consumer, amount))


def _places(held: Allocations) -> Iterator[tuple[ProviderId, str]]:
    for uuid, amounts in held.items():
        for name in amounts:
            yield uuid, name


def _reported_again(tags: Tags, traits: frozenset[str], saved: tuple[Reported, ...]) -> Tags:
    """Return tags with former traits, which belong to their reporters again."""
    groups = {one.group: one for one in tags.reported}
    for one in saved:
        now = groups.get(one.group)
        groups[one.group] = one if now is None else replace(now, traits=now.traits | one.traits)
    restored = replace(tags, traits=traits, reported=tuple(groups[name] for name in sorted(groups)))
    return replace(restored, reported=without_vanished(restored, traits))
