"""Rows of another ledger, taken over as they are: absolute values, whatever was there before.

All or nothing. Amounts may be over capacity; generations and times are those of the rows. Only sums
and trees are computed: what of an inventory is used, and the root of each provider. The same rows
again change nothing, so an import that was interrupted is simply repeated.
"""

from msgspec import Struct
from msgspec.structs import replace

from moorage.core.clock import Instant
from moorage.core.errors import Code, Error
from moorage.core.ids import AggregateId, ConsumerId, ProviderId
from moorage.core.ledger.facts import Changes, Facts, Keys
from moorage.core.ledger.model import (
    NO_TAGS,
    Consumer,
    CustomName,
    Inventory,
    Provider,
    Tags,
)
from moorage.core.ledger.vocabulary import check_consumer_type, customs, is_custom
from moorage.core.limits import (
    AGGREGATES_MAX,
    ALLOCATION_RATIO_MAX,
    IDENTIFIER_LENGTH_MAX,
    IMPORT_NAMES_MAX,
    IMPORT_ROWS_MAX,
    MAX_INT,
    NAME_LENGTH_MAX,
    TREE_SIZE_MAX,
)


class ProviderImage(Struct, frozen=True):
    """The wanted state of a provider, apart from what is used of its inventories."""

    uuid: ProviderId
    name: str
    generation: int
    parent: ProviderId | None
    created_at: Instant
    updated_at: Instant
    inventories: dict[str, Inventory]
    traits: frozenset[str]
    aggregates: frozenset[AggregateId]


class Rows(Struct, frozen=True):
    """Rows to write, by name or UUID, and those to delete first."""

    classes: dict[str, CustomName] = {}
    traits: dict[str, CustomName] = {}
    providers: dict[ProviderId, ProviderImage] = {}
    consumers: dict[ConsumerId, Consumer] = {}
    gone_classes: frozenset[str] = frozenset()
    gone_traits: frozenset[str] = frozenset()
    gone_providers: frozenset[ProviderId] = frozenset()
    gone_consumers: frozenset[ConsumerId] = frozenset()


def check_rows(rows: Rows) -> None:
    """Check each row by itself. Raises INVALID, LIMIT_EXCEEDED."""
    named = 0
    for name in (*rows.classes, *rows.traits):
        if not is_custom(name):
            raise Error(Code.INVALID, f"'{name}' is not the name of a custom class or trait.")
    for provider in rows.providers.values():
        _check_provider(provider)
        named += len(provider.inventories) + len(provider.traits) + len(provider.aggregates)
    for consumer in rows.consumers.values():
        _check_consumer(consumer)
        named += sum(map(len, consumer.allocations.values()))
    if named > IMPORT_NAMES_MAX:
        raise Error(
            Code.LIMIT_EXCEEDED,
            f"The rows of a request may have {IMPORT_NAMES_MAX} inventories, traits, aggregates and"
            f" amounts; these have {named}: send several requests.",
        )


def check_count(rows: int) -> None:
    """Raise LIMIT_EXCEEDED if a request has too many rows."""
    if rows > IMPORT_ROWS_MAX:
        raise Error(
            Code.LIMIT_EXCEEDED,
            f"A request may write and delete {IMPORT_ROWS_MAX} rows; this one has {rows}: send"
            " several requests.",
        )


def keys_for(rows: Rows) -> Keys:
    """Return what must be loaded for these rows, apart from the trees of moved providers."""
    keys = Keys(
        providers={*rows.providers, *rows.gone_providers},
        tags={*rows.providers, *rows.gone_providers},
        parents={*rows.gone_providers},
        consumers={*rows.consumers, *rows.gone_consumers},
        classes={*rows.classes, *rows.gone_classes},
        traits={*rows.traits, *rows.gone_traits},
        class_uses={*rows.gone_classes},
        trait_uses={*rows.gone_traits},
    )
    for provider in rows.providers.values():
        keys.names.add(provider.name)
        keys.classes |= customs(provider.inventories)
        keys.traits |= customs(provider.traits)
        if provider.parent is not None:
            keys.providers.add(provider.parent)
    for consumer in rows.consumers.values():
        keys.providers.update(consumer.allocations)
    return keys


def moved_trees(facts: Facts, rows: Rows) -> set[ProviderId]:
    """Return providers whose trees must be loaded: some get another parent, or are others."""
    needed = _renewed(facts, rows)
    for uuid in _moved(facts, rows):
        needed.add(uuid)
        parent = rows.providers[uuid].parent
        if parent is not None and parent in facts.providers:
            needed.add(parent)
    return needed


def write(facts: Facts, rows: Rows) -> Changes:
    """Return the changes that make the ledger have these rows, and lack those that are gone.

    Only the result must be consistent: a provider may be gone because its last consumer moves, and
    its name may be taken. Raises CLASS_UNKNOWN, TRAIT_UNKNOWN, PARENT_UNKNOWN, PROVIDER_UNKNOWN,
    INVENTORY_UNKNOWN, DUPLICATE_PROVIDER, TREE_LOOP, INVENTORY_IN_USE, PROVIDER_IN_USE,
    PROVIDER_HAS_CHILDREN, CLASS_IN_USE, TRAIT_IN_USE, LIMIT_EXCEEDED.
    """
    gone = {uuid for uuid in rows.gone_providers - rows.providers.keys() if uuid in facts.providers}
    changes = Changes()
    _words(facts, rows, gone, changes)
    _check_names(facts, rows, gone)
    roots = _Roots(facts, rows, gone)
    for image in rows.providers.values():
        _check_words(facts, rows, image)
        _provider(facts, changes, image, roots.of(image.uuid))
    for uuid in roots.below:
        stored, root = facts.providers[uuid], roots.of(uuid)
        if stored.root != root:
            changes.providers[uuid] = replace(stored, root=root)
    _trees_renewed(facts, rows, gone, changes)
    net = _consumers(facts, rows, gone, changes)
    _inventories(facts, rows, changes, net)
    _providers_gone(facts, rows, gone, changes, net)
    for key, amount in net.items():
        if amount:
            inventory = facts.inventories[key[0]][key[1]]
            changes.inventories[key] = replace(inventory, used=inventory.used + amount)
    return changes


def _check_provider(image: ProviderImage) -> None:
    what = f"Provider {image.uuid}"
    if not 1 <= len(image.name) <= NAME_LENGTH_MAX:
        raise Error(Code.INVALID, f"{what}: a name must have 1 to {NAME_LENGTH_MAX} characters.")
    _check_number(what, "generation", image.generation, 0)
    if image.parent == image.uuid:
        raise Error(Code.TREE_LOOP, f"{what} is its own parent.")
    for name, one in image.inventories.items():
        where = f"{what}, {name}"
        _check_number(where, "total", one.total, 0)
        _check_number(where, "reserved", one.reserved, 0)
        _check_number(where, "min_unit", one.min_unit, 1)
        _check_number(where, "max_unit", one.max_unit, 1)
        _check_number(where, "step_size", one.step_size, 1)
        if not abs(one.allocation_ratio) <= ALLOCATION_RATIO_MAX:
            raise Error(
                Code.INVALID, f"{where}: allocation_ratio must be up to {ALLOCATION_RATIO_MAX}."
            )
    if len(image.aggregates) > AGGREGATES_MAX:
        raise Error(Code.LIMIT_EXCEEDED, f"{what} can be in {AGGREGATES_MAX} aggregates.")


def _check_consumer(consumer: Consumer) -> None:
    what = f"Consumer {consumer.uuid}"
    _check_number(what, "generation", consumer.generation, 0)
    for member, text in (("project", consumer.project_id), ("user", consumer.user_id)):
        if len(text) > IDENTIFIER_LENGTH_MAX:
            raise Error(
                Code.INVALID, f"{what}: {member} has more than {IDENTIFIER_LENGTH_MAX} characters."
            )
    if consumer.consumer_type is not None:
        check_consumer_type(consumer.consumer_type)
    if not consumer.allocations or not all(consumer.allocations.values()):
        raise Error(Code.INVALID, f"{what} must have allocations, and an amount in each.")
    for amounts in consumer.allocations.values():
        for name, amount in amounts.items():
            _check_number(what, name, amount, 1)


def _check_number(what: str, member: str, value: int, least: int) -> None:
    if not least <= value <= MAX_INT:
        raise Error(Code.INVALID, f"{what}: {member} must be from {least} to {MAX_INT}.")


Held = dict[tuple[ProviderId, str], int]
"""Amounts by provider and class."""


def _words(facts: Facts, rows: Rows, gone: set[ProviderId], changes: Changes) -> None:
    """Add custom names that differ, and delete those that are gone and no longer used."""
    for name, row in rows.classes.items():
        if facts.classes.get(name) != row:
            changes.classes[name] = row
    for name, row in rows.traits.items():
        if facts.traits.get(name) != row:
            changes.traits[name] = row
    left = {*rows.providers, *gone}
    for name in (rows.gone_classes & facts.classes.keys()) - rows.classes.keys():
        stay = facts.class_uses[name] - sum(name in facts.inventories_of(uuid) for uuid in left)
        if stay or any(name in image.inventories for image in rows.providers.values()):
            raise Error(Code.CLASS_IN_USE, f"Resource class {name} is in use in inventory.")
        changes.classes[name] = None
    for name in (rows.gone_traits & facts.traits.keys()) - rows.traits.keys():
        stay = facts.trait_uses[name] - sum(name in facts.tags_of(uuid).traits for uuid in left)
        if stay or any(name in image.traits for image in rows.providers.values()):
            raise Error(Code.TRAIT_IN_USE, f"The trait {name} is in use by a resource provider.")
        changes.traits[name] = None


def _check_names(facts: Facts, rows: Rows, gone: set[ProviderId]) -> None:
    taken: dict[str, ProviderId] = {}
    for image in rows.providers.values():
        owner = facts.names.get(image.name, image.uuid)
        if owner in gone or (owner in rows.providers and rows.providers[owner].name != image.name):
            owner = image.uuid  # the present one leaves the name
        if owner != image.uuid or taken.setdefault(image.name, image.uuid) != image.uuid:
            raise Error(
                Code.DUPLICATE_PROVIDER,
                f"Provider {image.uuid}: another one has the name '{image.name}'.",
            )


def _check_words(facts: Facts, rows: Rows, image: ProviderImage) -> None:
    for name in image.inventories:
        if not (facts.has_class(name) or name in rows.classes):
            raise Error(Code.CLASS_UNKNOWN, f"Provider {image.uuid}: no such class {name}.")
    for name in image.traits:
        if not (facts.has_trait(name) or name in rows.traits):
            raise Error(Code.TRAIT_UNKNOWN, f"Provider {image.uuid}: no such trait {name}.")


def _provider(facts: Facts, changes: Changes, image: ProviderImage, root: ProviderId) -> None:
    uuid = image.uuid
    before = facts.providers.get(uuid)
    after = Provider(
        uuid,
        image.name,
        image.generation,
        image.parent,
        root,
        image.created_at,
        image.updated_at,
        None if before is None else before.agent,
        None if before is None else before.withheld,
    )
    if after != before:
        changes.providers[uuid] = after
    stored = facts.tags_of(uuid)
    tags = Tags(image.traits, image.aggregates, image.updated_at, stored.reported)
    is_another = _is_another(before, after)
    if (tags != stored or is_another) and (tags.traits or tags.aggregates or stored != NO_TAGS):
        changes.tags[uuid] = tags


def _consumers(facts: Facts, rows: Rows, gone: set[ProviderId], changes: Changes) -> Held:
    """Add consumers that differ or are gone; return by how much the use of inventories rises."""
    net: Held = {}
    for uuid in rows.gone_consumers - rows.consumers.keys():
        before = facts.consumers.get(uuid)
        if before is not None:
            _add(net, before, -1)
            changes.consumers[uuid] = None
    for consumer in rows.consumers.values():
        before = facts.consumers.get(consumer.uuid)
        if before == consumer:
            continue
        _check_held(facts, rows, gone, consumer)
        _add(net, consumer, 1)
        if before is not None:
            _add(net, before, -1)
        changes.consumers[consumer.uuid] = consumer
        _places(facts, rows, changes, consumer)
    return net


def _is_another(before: Provider | None, after: Provider | ProviderImage) -> bool:
    """Return whether it was deleted and created again: then followers need all of it again."""
    return before is not None and before.created_at != after.created_at


def _renewed(facts: Facts, rows: Rows) -> set[ProviderId]:
    """Return the roots that were deleted and created again."""
    found = set()
    for uuid, image in rows.providers.items():
        before = facts.providers.get(uuid)
        if before is not None and before.root == uuid and _is_another(before, image):
            found.add(uuid)
    return found


def _trees_renewed(facts: Facts, rows: Rows, gone: set[ProviderId], changes: Changes) -> None:
    """Add the members of trees whose root was created again, even if they stay as they are."""
    renewed = _renewed(facts, rows)
    if renewed:
        for uuid, member in facts.providers.items():
            if member.root in renewed and uuid not in gone:
                changes.providers.setdefault(uuid, member)


def _check_held(facts: Facts, rows: Rows, gone: set[ProviderId], consumer: Consumer) -> None:
    for uuid, amounts in consumer.allocations.items():
        image = rows.providers.get(uuid)
        if image is None and (uuid not in facts.providers or uuid in gone):
            raise Error(Code.PROVIDER_UNKNOWN, f"Consumer {consumer.uuid}: no provider {uuid}.")
        offered = facts.inventories_of(uuid) if image is None else image.inventories
        for name in amounts:
            if name not in offered:
                raise Error(
                    Code.INVENTORY_UNKNOWN,
                    f"Consumer {consumer.uuid}: provider {uuid} has no inventory of {name}.",
                )


def _places(facts: Facts, rows: Rows, changes: Changes, consumer: Consumer) -> None:
    held = facts.consumers.get(consumer.uuid)
    for uuid in consumer.allocations:
        if held is None or uuid not in held.allocations:
            image = rows.providers.get(uuid)
            generation = facts.providers[uuid].generation if image is None else image.generation
            changes.places[uuid, consumer.uuid] = generation


def _inventories(facts: Facts, rows: Rows, changes: Changes, net: Held) -> None:
    """Add inventories as the rows say, used as before and by `net`, from which they are taken."""
    for uuid, image in rows.providers.items():
        stored = facts.inventories_of(uuid)
        is_another = _is_another(facts.providers.get(uuid), image)
        for name, inventory in stored.items():
            if name in image.inventories:
                continue
            if inventory.used + net.pop((uuid, name), 0):
                raise Error(
                    Code.INVENTORY_IN_USE,
                    f"Provider {uuid}: there are allocations of {name}, which the row lacks.",
                )
            changes.inventories[uuid, name] = None
        for name, row in image.inventories.items():
            before = stored.get(name)
            used = net.pop((uuid, name), 0) + (0 if before is None else before.used)
            after = replace(row, used=used)
            if before is not None:
                after = replace(after, offered=before.offered, withheld=before.withheld)
            if after != before or is_another:
                changes.inventories[uuid, name] = after


def _providers_gone(
    facts: Facts, rows: Rows, gone: set[ProviderId], changes: Changes, net: Held
) -> None:
    for uuid in sorted(gone):
        if any(child not in gone and child not in rows.providers for child in facts.children[uuid]):
            raise Error(Code.PROVIDER_HAS_CHILDREN, f"Provider {uuid} has children.")
        changes.providers[uuid] = None
        changes.tags[uuid] = NO_TAGS
        for name, inventory in facts.inventories_of(uuid).items():
            if inventory.used + net.pop((uuid, name), 0):
                raise Error(Code.PROVIDER_IN_USE, f"Provider {uuid} has allocations.")
            changes.inventories[uuid, name] = None


def _add(sums: Held, consumer: Consumer, sign: int) -> None:
    for uuid, amounts in consumer.allocations.items():
        for name, amount in amounts.items():
            sums[uuid, name] = sums.get((uuid, name), 0) + sign * amount


def _moved(facts: Facts, rows: Rows) -> list[ProviderId]:
    """Return the providers of the ledger that get another parent."""
    found = []
    for uuid, image in rows.providers.items():
        before = facts.providers.get(uuid)
        if before is not None and before.parent != image.parent:
            found.append(uuid)
    return found


class _Roots:
    """The roots of providers once the rows are written; raises TREE_LOOP, PARENT_UNKNOWN."""

    def __init__(self, facts: Facts, rows: Rows, gone: set[ProviderId]) -> None:
        """Find all that is below moved providers. Raises LIMIT_EXCEEDED: too many."""
        self._facts = facts
        self._rows = rows
        self._gone = gone
        self._known: dict[ProviderId, ProviderId] = {}
        below: dict[ProviderId, None] = {}
        waiting = _moved(facts, rows)
        while waiting:
            for child in facts.children.get(waiting.pop(), ()):
                if child not in below:
                    below[child] = None
                    waiting.append(child)
            if len(below) > TREE_SIZE_MAX:
                raise Error(
                    Code.LIMIT_EXCEEDED,
                    f"More than {TREE_SIZE_MAX} providers are below those that get another parent.",
                )
        self.below = [uuid for uuid in below if uuid not in rows.providers and uuid not in gone]
        """Providers without rows that are below moved ones, now."""
        self._below = frozenset(below)

    def of(self, uuid: ProviderId) -> ProviderId:
        """Return the root of a provider."""
        line: dict[ProviderId, None] = {}
        at = uuid
        while (root := self._known.get(at)) is None:
            if at in line:
                raise Error(Code.TREE_LOOP, f"Provider {at} would be below itself.")
            above = self._above(at, next(reversed(line), at))
            line[at] = None
            if above is not None:
                at = above
        for one in line:
            self._known[one] = root
        return root

    def _above(self, uuid: ProviderId, child: ProviderId) -> ProviderId | None:
        """Return the parent; None: its root is known now."""
        image = self._rows.providers.get(uuid)
        if image is not None:
            parent = image.parent
        else:
            stored = self._facts.providers.get(uuid)
            if stored is None or uuid in self._gone:
                raise Error(Code.PARENT_UNKNOWN, f"Provider {child}: there is no parent {uuid}.")
            if uuid not in self._below:  # nothing above it is moved
                self._known[uuid] = stored.root
                return None
            parent = stored.parent
        if parent is None:
            self._known[uuid] = uuid
        return parent
