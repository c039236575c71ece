"""Inventories of a provider: their validity and their changes.

Source: Placement API reference, "Resource provider inventories".
"""

from collections.abc import Mapping

from msgspec import Struct

from moorage.core.clock import Instant
from moorage.core.errors import Code, Error
from moorage.core.ids import ProviderId
from moorage.core.ledger.capacity import capacity
from moorage.core.ledger.facts import Changes, Facts
from moorage.core.ledger.model import Inventory, Provider
from moorage.core.ledger.providers import check_generation, find, touched
from moorage.core.limits import ALLOCATION_RATIO_MAX, MAX_INT


class InventorySpec(Struct, frozen=True):
    """A caller's description of one inventory. All amounts are in units of the resource class."""

    total: int
    reserved: int = 0
    min_unit: int = 1
    max_unit: int = MAX_INT
    step_size: int = 1
    allocation_ratio: float = 1.0


class InventoryState(Struct, frozen=True):
    """All inventories of a provider after a change, and the provider's new generation."""

    generation: int
    inventories: dict[str, Inventory]


Specs = dict[str, InventorySpec]

Images = dict[tuple[ProviderId, str], Inventory | None]
"""After-images of inventories; None: deleted."""


def replace_all(
    facts: Facts,
    now: Instant,
    uuid: ProviderId,
    generation: int,
    specs: Specs,
    full_reserve: bool,
) -> tuple[Changes, InventoryState]:
    """Replace all inventories of a provider. The generation rises even if nothing changes.

    Raises PROVIDER_NOT_FOUND, PROVIDER_GENERATION, INVALID, CLASS_UNKNOWN, INVENTORY_IN_USE.
    """
    provider = find(facts, uuid)
    check_generation(provider, generation)
    for name, spec in specs.items():
        check_reserved(uuid, name, spec, full_reserve)
    for name in specs:
        check_class(facts, name)
    changed = rewritten(facts, now, uuid, specs)
    in_use = [
        name
        for (_, name), inventory in changed.items()
        if inventory is None and facts.inventories_of(uuid)[name].used
    ]
    if in_use:
        raise in_use_error(uuid, in_use)
    return _changed(facts, touched(provider, now), changed)


def create(
    facts: Facts,
    now: Instant,
    uuid: ProviderId,
    name: str,
    spec: InventorySpec,
    full_reserve: bool,
) -> tuple[Changes, InventoryState]:
    """Add an inventory of another resource class.

    Raises PROVIDER_NOT_FOUND, INVALID, CLASS_UNKNOWN, INVENTORY_EXISTS.
    """
    provider = find(facts, uuid)
    check_reserved(uuid, name, spec, full_reserve)
    check_class(facts, name)
    if name in facts.inventories_of(uuid):
        raise Error(
            Code.INVENTORY_EXISTS,
            f"Update conflict: resource provider {uuid} already has an inventory of {name}; "
            "use PUT to change it.",
        )
    return _changed(
        facts, touched(provider, now), {(uuid, name): stored(provider, spec, None, now)}
    )


def update(
    facts: Facts,
    now: Instant,
    uuid: ProviderId,
    name: str,
    generation: int,
    spec: InventorySpec,
    full_reserve: bool,
) -> tuple[Changes, InventoryState]:
    """Change one inventory. Shrinking it below its usage is allowed.

    Raises PROVIDER_NOT_FOUND, PROVIDER_GENERATION, CLASS_NOT_FOUND, INVENTORY_UNKNOWN, INVALID.
    """
    provider = find(facts, uuid)
    check_generation(provider, generation)
    check_reserved(uuid, name, spec, full_reserve)
    if not facts.has_class(name):
        raise Error(Code.CLASS_NOT_FOUND, f"No such resource class {name}.")
    before = facts.inventories_of(uuid).get(name)
    if before is None:
        raise Error(
            Code.INVENTORY_UNKNOWN,
            f"No inventory of class {name} found.",
        )
    return _changed(
        facts, touched(provider, now), {(uuid, name): stored(provider, spec, before, now)}
    )


def change_some(
    facts: Facts, now: Instant, uuid: ProviderId, generation: int, specs: Specs
) -> Changes:
    """Change some inventories, which must exist; the others stay. Full reservation is allowed.

    Raises PROVIDER_NOT_FOUND, PROVIDER_GENERATION, INVALID.
    """
    provider = find(facts, uuid)
    check_generation(provider, generation)
    held = facts.inventories_of(uuid)
    for name, spec in specs.items():
        check_figures(uuid, name, spec)
        check_reserved(uuid, name, spec, full_reserve=True)
    changed: Images = {
        (uuid, name): stored(provider, spec, held[name], now) for name, spec in specs.items()
    }
    return _written(facts, touched(provider, now), changed)


def delete(facts: Facts, now: Instant, uuid: ProviderId, name: str) -> Changes:
    """Delete the inventory of one class.

    Raises PROVIDER_NOT_FOUND, CLASS_NOT_FOUND, INVENTORY_NOT_FOUND, INVENTORY_IN_USE.
    """
    provider = find(facts, uuid)
    if not facts.has_class(name):
        raise Error(Code.CLASS_NOT_FOUND, f"No such resource class {name}.")
    held = facts.inventories_of(uuid).get(name)
    if held is None:
        raise Error(Code.INVENTORY_NOT_FOUND, f"No inventory of class {name} found for delete")
    if held.used:
        raise in_use_error(uuid, [name])
    return _written(facts, touched(provider, now), {(uuid, name): None})


def delete_all(facts: Facts, now: Instant, uuid: ProviderId) -> Changes:
    """Delete all inventories of a provider. Raises PROVIDER_NOT_FOUND, INVENTORY_IN_USE."""
    provider = find(facts, uuid)
    held = facts.inventories_of(uuid)
    in_use = [name for name, inventory in held.items() if inventory.used]
    if in_use:
        raise in_use_error(uuid, in_use)
    return _written(facts, touched(provider, now), {(uuid, name): None for name in held})


def check_class(facts: Facts, name: str) -> None:
    """Raise CLASS_UNKNOWN unless the class named in a request's body exists."""
    if not facts.has_class(name):
        raise Error(Code.CLASS_UNKNOWN, f"No such resource class {name}.")


def check_reserved(uuid: ProviderId, name: str, spec: InventorySpec, full_reserve: bool) -> None:
    """Raise INVALID if the capacity would be negative, or zero without `full_reserve`.

    `full_reserve`: a capacity of zero is allowed (Placement from microversion 1.26 on).
    """
    room = capacity(spec.total, spec.reserved, spec.allocation_ratio)
    # The rule applies to the shown capacity, rounded towards zero: -0.5 is zero, not negative.
    if room <= -1 or (room < 1 and not full_reserve):
        than = "greater than" if full_reserve else "greater than or equal to"
        raise Error(
            Code.INVALID,
            f"Invalid inventory for '{name}' on resource provider '{uuid}'. "
            f"The reserved value is {than} total.",
        )


def check_figures(uuid: ProviderId, name: str, spec: InventorySpec) -> None:
    """Raise INVALID for figures outside the allowed ranges, in dialects without schemas."""
    sizes = (spec.total, spec.min_unit, spec.max_unit, spec.step_size)
    if not (
        all(1 <= size <= MAX_INT for size in sizes)
        and 0 <= spec.reserved <= MAX_INT
        and abs(spec.allocation_ratio) <= ALLOCATION_RATIO_MAX
    ):
        raise Error(
            Code.INVALID,
            f"Invalid inventory for '{name}' on resource provider '{uuid}'. Sizes are from 1 to "
            f"{MAX_INT}, reserved from 0, allocation_ratio up to {ALLOCATION_RATIO_MAX}.",
        )


def offers(held: Mapping[str, Inventory], specs: Specs) -> bool:
    """Do these inventories match the specs exactly?"""
    if len(held) != len(specs):
        return False
    for name, inventory in held.items():  # a loop: reports compare thousands at a time
        spec = specs.get(name)
        if spec is None or figures_of(inventory) != figures_of(spec):
            return False
    return True


def figures_of(of: Inventory | InventorySpec) -> tuple[float, ...]:
    """Return what a caller describes of an inventory, to compare it."""
    return (
        of.total,
        of.reserved,
        of.min_unit,
        of.max_unit,
        of.step_size,
        of.allocation_ratio,
    )


def rewritten(facts: Facts, now: Instant, uuid: ProviderId, specs: Specs) -> Images:
    """Return the after-images that replace the provider's inventories by `specs`."""
    provider, held = facts.providers[uuid], facts.inventories_of(uuid)
    changed: Images = {(uuid, name): None for name in held if name not in specs}
    for name, spec in specs.items():
        changed[uuid, name] = stored(provider, spec, held.get(name), now)
    return changed


def in_use_error(uuid: ProviderId, names: list[str]) -> Error:
    """Return the error for removing classes that still have allocations."""
    # Clients' tests expect VCPU before DISK_GB.
    listed = ", ".join(sorted(names, reverse=True))
    return Error(
        Code.INVENTORY_IN_USE,
        f"Inventory for '{listed}' on resource provider '{uuid}' in use.",
    )


def stored(
    provider: Provider, spec: InventorySpec, before: Inventory | None, now: Instant
) -> Inventory:
    """Return the inventory of a provider with these figures, and the usage of the one before."""
    # Nothing new is offered of a machine until the agent follows, in the same batch.
    new = None if provider.agent is None else 0
    return Inventory(
        total=spec.total,
        reserved=spec.reserved,
        min_unit=spec.min_unit,
        max_unit=spec.max_unit,
        step_size=spec.step_size,
        allocation_ratio=spec.allocation_ratio,
        offered=new if before is None else before.offered,
        withheld=provider.withheld is not None,
        used=before.used if before else 0,
        created_at=before.created_at if before else now,
        updated_at=now,
    )


def _changed(
    facts: Facts,
    provider: Provider,
    changed: Images,
) -> tuple[Changes, InventoryState]:
    after = dict(facts.inventories_of(provider.uuid))
    for (_, name), inventory in changed.items():
        if inventory is None:
            del after[name]
        else:
            after[name] = inventory
    return _written(facts, provider, changed), InventoryState(provider.generation, after)


def _written(facts: Facts, provider: Provider, changed: Images) -> Changes:
    return Changes(
        providers={provider.uuid: provider},
        inventories=changed,
        overwritten=overwritten(facts, provider.uuid, changed),
    )


def overwritten(
    facts: Facts, uuid: ProviderId, changed: Images
) -> dict[tuple[ProviderId, str], int]:
    """Return the new totals of a managed provider's classes, for its agent; 0: it is deleted."""
    if facts.providers[uuid].agent is None:
        return {}
    held = facts.inventories_of(uuid)
    totals = {key: 0 if after is None else after.total for key, after in changed.items()}
    return {
        key: total
        for key, total in totals.items()
        if key[1] not in held or held[key[1]].total != total
    }
