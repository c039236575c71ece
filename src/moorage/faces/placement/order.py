"""The order of lists in the original, which clients print unchanged.

Resource classes are in the order of their numbers: the standard ones as in their library, then the
custom ones by creation. Source: `id`s of the original's tables, in the order in which SQLite and
MySQL return rows.
"""

from collections.abc import Iterable
from functools import partial

from moorage.core.clock import Instant
from moorage.core.ids import ConsumerId
from moorage.core.ledger.model import ProviderRecord
from moorage.core.ledger.search import Catalog
from moorage.service.os_vocabulary import STANDARD_CLASSES_LISTED

TreeKey = tuple[int, str, int, str]
"""Sort key of providers by tree: creation and UUID of the root, then those of the provider."""

ClassKey = tuple[int, int, str]
"""Sort key of resource classes: standard number, creation, name."""

Holder = tuple[ConsumerId, int, dict[str, int], Instant]
"""(consumer, its generation, amounts by resource class, time of its last update)."""

_STANDARD: dict[str, ClassKey] = {
    name: (number, 0, name) for number, name in enumerate(STANDARD_CLASSES_LISTED)
}


def class_key(catalog: Catalog, name: str) -> ClassKey:
    """Return the sort key of a resource class."""
    standard = _STANDARD.get(name)
    if standard is not None:
        return standard
    custom = catalog.classes.get(name)
    return (len(_STANDARD), custom.created_at if custom else 0, name)


def classes_in_order(catalog: Catalog, names: Iterable[str]) -> list[str]:
    """Return resource classes in the order of their numbers."""
    listed = list(names)
    if len(listed) > 1:
        listed.sort(key=partial(class_key, catalog))
    return listed


def holders_in_order(catalog: Catalog, holders: Iterable[Holder]) -> list[Holder]:
    """Return the allocations on one provider in the order of the original's index of allocations.

    It orders by class, then by amount, then by the time of the claim. Its first class determines a
    consumer's position.
    """
    placed = []
    for consumer, generation, amounts, updated_at in holders:
        listed = {name: amounts[name] for name in classes_in_order(catalog, amounts)}
        first = next(iter(listed))
        place = (class_key(catalog, first), amounts[first], updated_at, consumer)
        placed.append((place, (consumer, generation, listed, updated_at)))
    placed.sort(key=lambda one: one[0])
    return [holder for _, holder in placed]


def tree_key(catalog: Catalog, record: ProviderRecord) -> TreeKey:
    """Return the sort key of a provider in lists of whole trees."""
    provider = record.provider
    root = record if provider.root == provider.uuid else catalog.record(provider.root)
    began = root.provider.created_at if root else provider.created_at
    return (began, provider.root, provider.created_at, provider.uuid)


def traits_in_order(catalog: Catalog, names: Iterable[str]) -> list[str]:
    """Return traits: the standard ones by name, then the custom ones by creation."""

    def key(name: str) -> tuple[bool, int, str]:
        custom = catalog.traits.get(name)
        return (True, custom.created_at, name) if custom else (False, 0, name)

    return sorted(names, key=key)
