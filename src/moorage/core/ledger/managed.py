"""Managed classes: inventories that follow what the agent of a machine declares.

An agent declares the parts of its machine. The ledger creates the missing providers, keeps `total`
at what is desired and `offered` at what the machine can give now, and closes or opens the tree.
Changes of `offered` are no changes of the provider for others: its generation and times stay.
Source: decision 0025.
"""

from collections.abc import Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from moorage.core.clock import Instant
from moorage.core.errors import Code, Error
from moorage.core.ids import AgentId, ProviderId
from moorage.core.ledger import providers, vocabulary, withholding
from moorage.core.ledger.bulk import Trial
from moorage.core.ledger.draining import is_drained
from moorage.core.ledger.facts import Changes, Facts, Keys
from moorage.core.ledger.model import Inventory, Provider
from moorage.core.limits import MAX_INT, NAME_LENGTH_MAX


class ClassOffer(Struct, frozen=True):
    """The desired amount of one class in a part of a machine, and the offer now.

    `max_unit` None and `step_size` 1: the machine demands nothing, and clients may set them.
    `resized`: the machine has just changed its demands, so even none replaces what is stored.
    `registered` False: it is a former class of the part.
    """

    desired: int
    offered: int
    max_unit: int | None = None
    step_size: int = 1
    registered: bool = True
    resized: bool = False


class PartOffer(Struct, frozen=True):
    """A provider whose classes an agent manages. `parent` None: it is the root of the machine.

    The name of its provider begins with that of the root.
    """

    name: str
    parent: ProviderId | None
    classes: Mapping[str, ClassOffer]


class MachineOffer(Struct, frozen=True):
    """Everything that the ledger takes over from an agent.

    `root_name`: create the root with this name if it does not exist; None: it must exist. `parts`
    are listed after their parents; they may include the root. `withheld` is the reason why the
    whole tree below the root is closed; None: it is open. `retired`: the agent has ended, so the
    names of its providers become free for another agent of the machine.
    """

    agent: AgentId
    root: ProviderId
    root_name: str | None
    parts: Mapping[ProviderId, PartOffer]
    withheld: str | None
    retired: bool = False


def keys_for(
    known: Mapping[ProviderId, Provider], machine: MachineOffer, *, create: bool = True
) -> Keys:
    """Return what `follow` needs: the tree, and the names and classes that it may take.

    `known` are the providers that have been loaded; a client may have renamed the root.
    """
    keys = Keys(trees={machine.root}, providers=set(machine.parts))
    for part in machine.parts.values():
        keys.classes.update(vocabulary.customs(part.classes))
    if create:
        keys.names.update(_names(known, machine))
    if machine.retired:
        present = {machine.root, *machine.parts} & known.keys()
        keys.names.update(_retired_name(known[uuid]) for uuid in present)
    return keys


def _names(known: Mapping[ProviderId, Provider], machine: MachineOffer) -> Iterator[str]:
    """Yield the names of providers that may be created; a name that is too long is none."""
    if machine.root_name is not None:
        yield machine.root_name
    root = known.get(machine.root)
    above = machine.root_name if root is None else root.name
    for uuid, part in machine.parts.items():
        if above is not None and uuid != machine.root:
            name = _joined(above, part.name)
            if len(name) <= NAME_LENGTH_MAX:
                yield name


def part_name(root: str, part: str) -> str:
    """Return the name of the provider of a part. Raises INVALID if it is too long.

    Args:
        root: the name of the root's provider.
        part: the name of the part.
    """
    name = _joined(root, part)
    if len(name) > NAME_LENGTH_MAX:
        raise Error(
            Code.INVALID,
            f"Provider name '{name}' has more than {NAME_LENGTH_MAX} characters: shorten the name "
            "of the part or of the machine.",
        )
    return name


def _joined(root: str, part: str) -> str:
    return f"{root}_{part}"


def follow(facts: Facts, now: Instant, machine: MachineOffer, *, create: bool = True) -> Changes:
    """Make providers and inventories match what an agent declares.

    Args:
        facts: with what `keys_for` names.
        now: the time of the first new row.
        machine: what the agent declares.
        create: whether missing providers are created, or the reason why not is raised. Otherwise
            those that a client has deleted are skipped, so that nothing keeps a machine open.

    Raises:
        Error: only with `create`: PROVIDER_NOT_FOUND, DUPLICATE_PROVIDER, PARENT_UNKNOWN,
            CLASS_MANAGED, CLASS_UNKNOWN, ROOT_TAKEN, INVALID.
    """
    trial = Trial(facts, now)
    try:
        if create and machine.root_name is not None:
            _own_root(trial, machine, machine.root_name)
        if create:
            providers.find(facts, machine.root)
        for uuid, part in machine.parts.items():
            if create or _may_follow(facts, machine, uuid):
                _follow_part(trial, machine, uuid, part)
        trial.step(follow_root(facts, machine))
        if machine.retired:
            _retire(trial, machine)
        return trial.changes
    finally:
        trial.take_back()


def _has_root(facts: Facts, machine: MachineOffer) -> bool:
    """Return whether the root of a machine exists.

    A root that was created for the agent, and that a client has deleted and created again, is
    another provider.
    """
    root = facts.providers.get(machine.root)
    return root is not None and (machine.root_name is None or root.agent == machine.agent)


def _may_follow(facts: Facts, machine: MachineOffer, uuid: ProviderId) -> bool:
    """Return whether the provider of a part exists, and no other agent manages it."""
    provider = facts.providers.get(uuid)
    return provider is not None and provider.agent in (None, machine.agent)


def follow_root(facts: Facts, machine: MachineOffer) -> Changes:
    """Close or open the tree of a machine, if its root exists.

    Without a root, parts may be left that a client has moved elsewhere. A root that an operator has
    drained stays so until it is resumed: no message of a machine opens it.
    """
    if not _has_root(facts, machine) or is_drained(facts.providers[machine.root]):
        return Changes()
    subtree = providers.subtree_of(facts, facts.providers[machine.root])
    if machine.withheld is None:
        return withholding.open_again(facts, subtree)
    return withholding.withhold(facts, subtree, machine.withheld)


def _retire(trial: Trial, machine: MachineOffer) -> None:
    """Rename the providers that were created for an agent; their UUIDs and contents stay."""
    facts = trial.facts
    for uuid in {machine.root, *machine.parts}:
        provider = facts.providers.get(uuid)
        if provider is not None and provider.agent == machine.agent:
            name = _retired_name(provider)
            if name not in facts.names:  # a client may have used it; nothing depends on the name
                trial.step(providers.update(facts, trial.now, uuid, name, False, None, False)[0])


def _retired_name(provider: Provider) -> str:
    """Return the name of the provider of an agent that has ended; it contains its UUID."""
    suffix = f"_decommissioned_{provider.uuid}"
    if provider.name.endswith(suffix):
        return provider.name
    return provider.name[: NAME_LENGTH_MAX - len(suffix)] + suffix


def _own_root(trial: Trial, machine: MachineOffer, name: str) -> None:
    """Create the root of a machine; a provider of somebody else is not taken over."""
    facts, root = trial.facts, machine.root
    if root not in facts.providers:
        _check_name_free(facts, machine, name)
        trial.step(providers.create(facts, trial.now, root, name, None)[0])
        made = replace(facts.providers[root], agent=machine.agent)
        trial.step(Changes(providers={root: made}))
    elif facts.providers[root].agent != machine.agent:
        raise Error(
            Code.ROOT_TAKEN,
            f"Provider {root} exists already, and agent {machine.agent} has not created it: "
            "register with this provider as root.",
        )


def _follow_part(trial: Trial, machine: MachineOffer, uuid: ProviderId, part: PartOffer) -> None:
    facts = trial.facts
    if uuid not in facts.providers:
        name = part_name(facts.providers[machine.root].name, part.name)
        _check_name_free(facts, machine, name)
        trial.step(providers.create(facts, trial.now, uuid, name, part.parent)[0])
    provider = facts.providers[uuid]
    if provider.agent != machine.agent:
        _check_unmanaged(provider)
        trial.step(Changes(providers={uuid: replace(provider, agent=machine.agent)}))
    for name, offer in part.classes.items():
        if not facts.has_class(name):
            if not offer.registered and not offer.desired:
                continue  # a client has deleted it, and nothing needs it
            if not vocabulary.is_custom(name):
                raise Error(
                    Code.CLASS_UNKNOWN,
                    f"There is no resource class '{name}': register a standard one, or one whose "
                    "name begins with CUSTOM_, which is created.",
                )
            trial.step(vocabulary.class_ensure(facts, trial.now, name)[0])
        trial.step(_follow_class(facts, trial.now, facts.providers[uuid], name, offer))


def _check_name_free(facts: Facts, machine: MachineOffer, name: str) -> None:
    """Raise DUPLICATE_PROVIDER, and say what to do, if a provider of somebody else has a name."""
    taken = facts.names.get(name)
    if taken is not None:
        raise Error(
            Code.DUPLICATE_PROVIDER,
            f"Agent {machine.agent} needs a provider named {name}, but provider {taken} has this "
            "name. Rename or delete that provider, or give the machine another host name. If that "
            "provider is this machine, as a compute node of nova is, create another agent for it: "
            f"moorage agent create NEW_UUID --root {taken}",
        )


def _check_unmanaged(provider: Provider) -> None:
    if provider.agent is not None:
        raise Error(
            Code.CLASS_MANAGED,
            f"Provider {provider.uuid} is managed by agent {provider.agent}. A part of a machine "
            "has one agent: register it without this part, or decommission the other agent.",
        )


def _follow_class(
    facts: Facts, now: Instant, provider: Provider, name: str, offer: ClassOffer
) -> Changes:
    before = facts.inventories_of(provider.uuid).get(name)
    after = _inventory(provider, before, offer, now)
    changes = Changes()
    if after != before:
        changes.inventories[provider.uuid, name] = after
    if _figures(after) != _figures(before):
        changes.providers[provider.uuid] = providers.touched(provider, now)
    return changes


def _inventory(
    provider: Provider, before: Inventory | None, offer: ClassOffer, now: Instant
) -> Inventory | None:
    """Return the inventory that matches an offer; None: there is none, because nothing is desired.

    Placement knows no total of 0: a class that is used keeps a total of at least 1.
    """
    used = 0 if before is None else before.used
    if not offer.desired and not used:
        return None
    max_unit = MAX_INT if offer.max_unit is None else offer.max_unit
    if before is None:
        return Inventory(
            offer.desired,
            max_unit=max_unit,
            step_size=offer.step_size,
            offered=offer.offered,
            withheld=provider.withheld is not None,
            created_at=now,
            updated_at=now,
        )
    after = replace(before, total=max(offer.desired, 1), offered=offer.offered)
    if offer.resized or offer.max_unit is not None:
        after = replace(after, max_unit=max_unit)
    if offer.resized or offer.step_size > 1:
        after = replace(after, step_size=offer.step_size)
    return after if _figures(after) == _figures(before) else replace(after, updated_at=now)


def _figures(inventory: Inventory | None) -> tuple[float, ...] | None:
    """Return what the Placement API shows of an inventory."""
    if inventory is None:
        return None
    return (
        inventory.total,
        inventory.reserved,
        inventory.min_unit,
        inventory.max_unit,
        inventory.step_size,
        inventory.allocation_ratio,
    )


def follow_class(
    facts: Facts, now: Instant, uuid: ProviderId, name: str, offer: ClassOffer | None
) -> Changes:
    """Make an inventory that a client has just written match what the agent declares.

    The generation of the provider stays: the client has got that of its write. `offer` None: no
    agent manages this class.
    """
    if offer is not None:
        made = _follow_class(facts, now, facts.providers[uuid], name, offer)
        return Changes(inventories=made.inventories)
    held = facts.inventories_of(uuid).get(name)
    if held is None or held.offered is None:
        return Changes()
    return Changes(inventories={(uuid, name): replace(held, offered=None)})
