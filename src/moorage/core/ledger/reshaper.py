"""The reshape: inventories and their allocations move together, or not at all.

Source: Placement API reference, "Reshaper"; the nova spec "reshape-provider-tree". Only the final
state is checked, so a class may move together with its allocations. What is written is the final
state of `reshaping/final_state.py`; its constraints are those of the original, which counts in the
order of the request, says only what fails first, and lets a total fall below its usage.
"""

from collections import Counter

from moorage.core.clock import Instant
from moorage.core.errors import Code, Error
from moorage.core.ids import ProviderId
from moorage.core.ledger import allocations
from moorage.core.ledger.allocations import ConsumerRequest, Shift
from moorage.core.ledger.facts import Changes, Facts
from moorage.core.ledger.inventory import Specs, check_class, in_use_error, rewritten
from moorage.core.ledger.model import Inventory, Provider
from moorage.core.ledger.providers import check_generation, touched
from moorage.core.ledger.reshaping.final_state import carried_out

Reshaped = dict[ProviderId, tuple[int, Specs]]
"""The generation the caller has seen and the complete new inventories, by provider."""


def reshape(
    facts: Facts, now: Instant, inventories: Reshaped, requests: list[ConsumerRequest]
) -> Changes:
    """Replace the inventories of the given providers and the allocations of the given consumers.

    Raises the first of: PROVIDER_NOT_FOUND (inventories), PROVIDER_GENERATION, CONSUMER_GENERATION,
    PROVIDER_UNKNOWN (allocations), CLASS_UNKNOWN (inventories, then allocations),
    INVENTORY_MISSING, UNITS_VIOLATED, CAPACITY_EXCEEDED, INVENTORY_IN_USE.
    """
    _check_providers(facts, inventories)
    allocations.check_consumers(facts, requests)
    allocations.check_providers(facts, requests)
    for _, specs in inventories.values():
        for name in specs:
            check_class(facts, name)
    allocations.check_classes(facts, requests)
    shift = allocations.shift_of(facts, requests)
    final = _final(facts, now, inventories)
    offers = _offers(facts, final)
    stock = allocations.stock_of(offers, shift)
    allocations.check_offers(offers, shift, stock)
    allocations.check_room(requests, shift, stock, recording=True)
    _check_dropped(facts, final, shift)
    raised: dict[ProviderId, Provider | None] = {}
    for uuid, rises in _rises(facts, inventories, requests).items():
        provider = facts.providers[uuid]
        for _ in range(rises):
            provider = touched(provider, now)
        raised[uuid] = provider
    return carried_out(facts, now, raised, final, requests, shift)


def _rises(
    facts: Facts, inventories: Reshaped, requests: list[ConsumerRequest]
) -> Counter[ProviderId]:
    """Return by how much each generation rises: clients of the API know the steps of a reshape.

    First old and new inventories together (for providers with new ones), then the allocations,
    then the new inventories alone.
    """
    rises = Counter(uuid for uuid, (_, specs) in inventories.items() if specs)
    rises.update(allocations.providers_touched(facts, requests))
    rises.update(inventories.keys())
    return rises


def _check_providers(facts: Facts, inventories: Reshaped) -> None:
    for uuid, (generation, _) in inventories.items():
        provider = facts.providers.get(uuid)
        if provider is None:
            raise Error(
                Code.PROVIDER_NOT_FOUND,
                f"Resource provider {uuid} in inventories not found: "
                f"No resource provider with uuid {uuid} found",
            )
        check_generation(provider, generation)


def _final(
    facts: Facts, now: Instant, inventories: Reshaped
) -> dict[tuple[ProviderId, str], Inventory | None]:
    final: dict[tuple[ProviderId, str], Inventory | None] = {}
    for uuid, (_, specs) in inventories.items():
        final.update(rewritten(facts, now, uuid, specs))
    return final


def _offers(
    facts: Facts, final: dict[tuple[ProviderId, str], Inventory | None]
) -> dict[ProviderId, dict[str, Inventory]]:
    """Return all inventories with the new ones.

    A removed class keeps its old inventory, so that allocating it is refused as "in use".
    """
    offers = dict(facts.inventories)
    for uuid in {uuid for uuid, _ in final}:
        offers[uuid] = dict(offers.get(uuid, {}))
    for (uuid, name), inventory in final.items():
        if inventory is not None:
            offers[uuid][name] = inventory
    return offers


def _check_dropped(
    facts: Facts, final: dict[tuple[ProviderId, str], Inventory | None], shift: Shift
) -> None:
    left: dict[ProviderId, list[str]] = {}
    for (uuid, name), inventory in final.items():
        if inventory is None:
            used = facts.inventories_of(uuid)[name].used + shift.net((uuid, name))
            if used:
                left.setdefault(uuid, []).append(name)
    for uuid, names in left.items():
        raise in_use_error(uuid, names)
