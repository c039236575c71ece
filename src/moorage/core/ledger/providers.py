"""Providers and their trees: create, rename, move, delete.

Source: Placement API reference, "Resource providers"; re-parenting as of microversion 1.37.
"""

from msgspec.structs import replace

from moorage.core.clock import Instant
from moorage.core.errors import Code, Error
from moorage.core.ids import ProviderId
from moorage.core.ledger import withholding
from moorage.core.ledger.facts import Changes, Facts
from moorage.core.ledger.model import NO_TAGS, Provider
from moorage.core.limits import TREE_SIZE_MAX


def find(facts: Facts, uuid: ProviderId) -> Provider:
    """Return the provider named in a request's address, or raise PROVIDER_NOT_FOUND."""
    provider = facts.providers.get(uuid)
    if provider is None:
        raise Error(Code.PROVIDER_NOT_FOUND, f"No resource provider with uuid {uuid} found")
    return provider


def check_generation(provider: Provider, generation: int | None) -> None:
    """Raise PROVIDER_GENERATION unless the given generation is current; None: not checked."""
    if generation is not None and provider.generation != generation:
        raise Error(
            Code.PROVIDER_GENERATION,
            f"resource provider generation conflict for provider {provider.uuid}: "
            f"actual: {provider.generation}, given: {generation}",
        )


def touched(provider: Provider, now: Instant) -> Provider:
    """Return the provider with its generation raised by one."""
    return replace(
        provider, generation=provider.generation + 1, updated_at=after_creation(provider, now)
    )


def after_creation(provider: Provider, now: Instant) -> Instant:
    """Return the time of an update, later than the creation: equal times mean never updated."""
    return now if now > provider.created_at else Instant(provider.created_at + 1)


def create(
    facts: Facts, now: Instant, uuid: ProviderId, name: str, parent: ProviderId | None
) -> tuple[Changes, Provider]:
    """Add a provider at generation 0.

    Raises DUPLICATE_PROVIDER if its name or uuid is taken, PARENT_UNKNOWN, or INVALID if it would
    be its own parent.
    """
    _check_name(name)
    if parent == uuid:
        raise Error(
            Code.INVALID,
            "parent provider UUID cannot be same as UUID. Please set parent provider UUID to None "
            "if there is no parent.",
        )
    above = None if parent is None else _parent(facts, parent)
    if uuid in facts.providers:
        raise _duplicate("uuid", uuid)
    _check_name_free(facts, name, uuid)
    if above is None:
        provider = Provider(uuid, name, 0, None, uuid, now, now)
    else:
        provider = Provider(uuid, name, 0, parent, above.root, now, now, withheld=above.withheld)
    return Changes(providers={uuid: provider}), provider


def update(
    facts: Facts,
    now: Instant,
    uuid: ProviderId,
    name: str,
    move: bool,
    parent: ProviderId | None,
    free: bool,
) -> tuple[Changes, Provider]:
    """Rename a provider and, with `move`, move its whole subtree to another parent.

    The generation does not change; without a difference nothing changes. A moved subtree is
    withheld if its new parent is. Raises PROVIDER_NOT_FOUND, DUPLICATE_PROVIDER, PARENT_UNKNOWN,
    REPARENT_REFUSED (without `free`), TREE_LOOP, LIMIT_EXCEEDED.
    """
    before = find(facts, uuid)
    after = replace(before, name=name, updated_at=after_creation(before, now))
    changes = Changes(providers={uuid: after})
    if move and parent != before.parent:
        changes = _move(facts, now, after, parent, free)
    elif name == before.name:
        return Changes(), before
    _check_name(name)
    _check_name_free(facts, name, uuid)
    return changes, changes.providers[uuid] or after


def delete(facts: Facts, uuid: ProviderId) -> Changes:
    """Remove a provider with its inventories and tags.

    Raises PROVIDER_NOT_FOUND, PROVIDER_HAS_CHILDREN, PROVIDER_IN_USE.
    """
    if uuid not in facts.providers:
        raise Error(
            Code.PROVIDER_NOT_FOUND, f"No resource provider with uuid {uuid} found for delete"
        )
    if facts.children.get(uuid):
        raise Error(
            Code.PROVIDER_HAS_CHILDREN,
            f"Unable to delete parent resource provider {uuid}: It has child resource providers.",
        )
    inventories = facts.inventories_of(uuid)
    if any(inventory.used for inventory in inventories.values()):
        raise Error(
            Code.PROVIDER_IN_USE,
            f"Unable to delete resource provider {uuid}: Resource provider has allocations.",
        )
    return Changes(
        providers={uuid: None},
        inventories={(uuid, name): None for name in inventories},
        tags={uuid: NO_TAGS},
    )


def _check_name(name: str) -> None:
    if not name:
        raise Error(Code.INVALID, "name is required")


def _check_name_free(facts: Facts, name: str, uuid: ProviderId) -> None:
    if facts.names.get(name, uuid) != uuid:
        raise _duplicate("name", name)


def _duplicate(what: str, taken: str) -> Error:
    return Error(
        Code.DUPLICATE_PROVIDER, f"Conflicting resource provider {what}: {taken} already exists."
    )


def _parent(facts: Facts, parent: ProviderId) -> Provider:
    found = facts.providers.get(parent)
    if found is None:
        raise Error(
            Code.PARENT_UNKNOWN, f"parent provider UUID does not exist: {parent}. Create it first."
        )
    return found


def _move(
    facts: Facts, now: Instant, provider: Provider, parent: ProviderId | None, free: bool
) -> Changes:
    """Return the changes of the provider, which is at its new place, and of all below it."""
    above = None if parent is None else _parent(facts, parent)
    root = provider.uuid if above is None else above.root
    if not free and provider.parent is not None:
        verb = "un-parenting" if parent is None else "re-parenting"
        raise Error(
            Code.REPARENT_REFUSED,
            f"{verb} a provider is not currently allowed.",
        )
    subtree = subtree_of(facts, provider)
    if len(subtree) > TREE_SIZE_MAX:
        raise Error(
            Code.LIMIT_EXCEEDED,
            f"{len(subtree)} providers stand below {provider.uuid}; "
            f"at most {TREE_SIZE_MAX} can change at once.",
        )
    if parent is not None and any(member.uuid == parent for member in subtree):
        raise Error(
            Code.TREE_LOOP,
            f"{parent} is {provider.uuid} or below it: "
            "creating loop in the provider tree is not allowed.",
        )
    after = [
        replace(provider, parent=parent, root=root),
        *(
            member
            if member.root == root
            else replace(member, root=root, updated_at=after_creation(member, now))
            for member in subtree[1:]
        ),
    ]
    changes = withholding.moved(facts, after, above)
    for old, new in zip(subtree, after, strict=True):
        if new is not old:
            changes.providers.setdefault(new.uuid, new)
    return changes


def ancestors_of(facts: Facts, provider: Provider) -> list[Provider]:
    """Return all providers above one, the nearest first. The whole tree must be loaded."""
    found = []
    while provider.parent is not None:
        provider = facts.providers[provider.parent]
        found.append(provider)
    return found


def subtree_of(facts: Facts, top: Provider) -> list[Provider]:
    """Return a provider and all below it, parents first. The whole tree must be loaded."""
    below: dict[ProviderId | None, list[Provider]] = {}
    for member in facts.providers.values():
        if member.root == top.root:
            below.setdefault(member.parent, []).append(member)
    found = [top]
    for member in found:
        found.extend(below.get(member.uuid, ()))
    return found
