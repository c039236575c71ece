"""Changes of single slots by an operator: made, labelled, drained, resumed, removed.

A drained slot is never granted again. It stays until it is resumed or removed, or goes as soon as
it is free. Only slots of pools with `native_slots` can be made here and can go: those of other
pools follow Boskos' configuration, which would make them again.
"""

from collections.abc import Iterable, Mapping

from msgspec import structs

from moorage.core.admission.facts import Changes, Facts
from moorage.core.admission.model import Drain, Pool, Slot
from moorage.core.admission.pools import not_found
from moorage.core.admission.slots import slot_new
from moorage.core.clock import Instant
from moorage.core.errors import Code, Error
from moorage.core.labels import check_labels
from moorage.core.limits import KEY_LENGTH_MAX, SLOTS_MAX
from moorage.core.texts import check_reason, check_segment


def add(
    facts: Facts, wall: Instant, pool: str, names: Iterable[str], labels: Mapping[str, str]
) -> Changes:
    """Make free slots with these labels; those that exist with the same labels stay as they are.

    `facts` contain the pool, and all slots with these names. Raises POOL_NOT_FOUND, INVALID,
    SLOT_EXISTS, LIMIT_EXCEEDED.
    """
    found = _native(facts, pool)
    check_labels(labels)
    wanted = dict.fromkeys(names)
    if not wanted:
        raise Error(Code.INVALID, "names must have at least one name.")
    if len(wanted) > SLOTS_MAX:
        raise _too_many()
    there, changes = facts.slots.get(pool, {}), Changes()
    for name in wanted:
        # Without a slash, because `POOL/SLOT` in change rows must name one slot.
        check_segment("A slot's name", name, KEY_LENGTH_MAX)
        if name in there and there[name].labels == labels and there[name].drain is None:
            continue
        other = _pool_with(facts, name)
        if other is not None:
            raise Error(
                Code.SLOT_EXISTS,
                f"There is already a slot '{name}' in pool '{other}': names are unique over all"
                " pools.",
            )
        slot = slot_new(pool, name, "", wall)
        changes.slots[pool, name] = structs.replace(slot, labels=dict(labels))
    if len(there) + len(changes.slots) > SLOTS_MAX:
        raise _too_many()
    return _touching(changes, found)


def label(
    facts: Facts, pool: str, name: str, labels: Mapping[str, str]
) -> tuple[Changes, Slot, Slot]:
    """Replace the labels of a slot; its lease keeps it. Returns also the slot before and after.

    Raises POOL_NOT_FOUND, SLOT_NOT_FOUND, INVALID.
    """
    found, slot = _slot(facts, pool, name)
    check_labels(labels)
    return _changed(found, slot, structs.replace(slot, labels=dict(labels)))


def drain(
    facts: Facts, wall: Instant, pool: str, name: str, *, keep: bool, reason: str
) -> tuple[Changes, Slot, Slot | None]:
    """Keep a slot from further grants; unless `keep`, it goes once it is free, perhaps at once.

    Raises POOL_NOT_FOUND, SLOT_NOT_FOUND, INVALID.
    """
    found, slot = _slot(facts, pool, name)
    check_reason(reason)
    if not keep:
        _native(facts, pool)
    if not keep and not slot.occupied:
        return _touching(Changes(slots={(pool, name): None}), found), slot, None
    before = slot.drain
    if before is not None and (before.goes, before.reason) == (not keep, reason):
        return Changes(), slot, slot
    drained = Drain(goes=not keep, reason=reason, at=wall)
    return _changed(found, slot, structs.replace(slot, drain=drained))


def resume(facts: Facts, pool: str, name: str) -> tuple[Changes, Slot, Slot]:
    """Let a drained slot be granted again. Raises POOL_NOT_FOUND, SLOT_NOT_FOUND."""
    found, slot = _slot(facts, pool, name)
    return _changed(found, slot, structs.replace(slot, drain=None))


def remove(facts: Facts, pool: str, name: str) -> tuple[Changes, Slot]:
    """Remove a free slot. Raises POOL_NOT_FOUND, SLOT_NOT_FOUND, INVALID, SLOT_IN_USE."""
    found, slot = _slot(facts, pool, name)
    _native(facts, pool)
    if slot.occupied:
        raise Error(
            Code.SLOT_IN_USE,
            f"Slot '{name}' of pool '{pool}' is held by {slot.owner}: drain the slot, and it is"
            f" removed once it is free.",
        )
    return _touching(Changes(slots={(pool, name): None}), found), slot


def _changed(pool: Pool, before: Slot, after: Slot) -> tuple[Changes, Slot, Slot]:
    if before == after:
        return Changes(), before, before
    changes = Changes(slots={(pool.name, before.name): after})
    return _touching(changes, pool), before, after


def _touching(changes: Changes, pool: Pool) -> Changes:
    """Add the pool to a change of its slots: those who follow it look at its line again."""
    if changes.slots:
        changes.pools[pool.name] = pool
    return changes


def _slot(facts: Facts, pool: str, name: str) -> tuple[Pool, Slot]:
    found = facts.pools.get(pool)
    if found is None:
        raise not_found(pool)
    slot = facts.slots.get(pool, {}).get(name)
    if slot is None:
        raise Error(Code.SLOT_NOT_FOUND, f"There is no slot '{name}' in pool '{pool}'.")
    return found, slot


def _native(facts: Facts, pool: str) -> Pool:
    found = facts.pools.get(pool)
    if found is None:
        raise not_found(pool)
    if not found.spec.native_slots:
        where = "has a limit" if found.spec.limit is not None else "follows Boskos' configuration"
        raise Error(
            Code.INVALID,
            f"Pool '{pool}' {where}, so the native API cannot add or remove its slots:"
            " create a pool with native_slots.",
        )
    return found


def _pool_with(facts: Facts, name: str) -> str | None:
    return next((pool for pool, slots in facts.slots.items() if name in slots), None)


def _too_many() -> Error:
    return Error(Code.LIMIT_EXCEEDED, f"A pool may have at most {SLOTS_MAX} slots.")
