"""The rules about providers: the ledger's, against Nova's services and hypervisors. Pure."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from moorage.integrations.nova.facts import IRONIC, Service
from moorage.integrations.nova.findings import Finding, Unclear, about
from moorage.integrations.nova.ledger_view import COMPUTE_NODE, Providers, service_named
from moorage.integrations.placement.capacity_there import capacity_there
from moorage.wire.providers import ProviderShown

DISABLED: Final = "COMPUTE_STATUS_DISABLED"
"""The trait by which nova keeps the scheduler away from a disabled service."""

QUIET: Final = timedelta(hours=1)
"""A provider is created before its inventory: only one that is older may lack it."""


@dataclass(frozen=True, slots=True)
class Hosts:
    """Nova's services by host, and what Ironic says.

    `in_ironic`: the nodes that Ironic has; None: it was not asked.
    """

    services: Mapping[str, Service]
    in_ironic: Collection[str] | None = None

    @property
    def are_known(self) -> bool:
        """Return whether every cell answers."""
        return not any(one.is_unknown for one in self.services.values())


def is_ironic(provider: ProviderShown, providers: Providers) -> bool:
    """Return whether a root is a node of Ironic's: Nova says so, or it looks as all of them do."""
    known = providers.hypervisors.get(provider.uuid)
    if known is not None:
        return known.kind == IRONIC
    if provider.parent is not None or provider.name != provider.uuid or not provider.inventories:
        return False
    classes = provider.inventories.items()
    return all(name.startswith("CUSTOM_") and one.total <= 1 for name, one in classes)


def dead_provider(
    root: ProviderShown, providers: Providers, hosts: Hosts
) -> Finding | Unclear | None:
    """dead_provider: Nova has neither a compute node nor a service of a root that was one.

    Nothing of a tree that is used is deleted.
    """
    if root.parent is not None or COMPUTE_NODE not in root.traits:
        return None
    if root.uuid in providers.hypervisors:
        return None
    if not hosts.are_known:
        return Unclear(root.uuid, "a cell does not answer: its compute node may be there")
    if service_named(root.name, hosts.services) is not None:
        return Unclear(
            root.uuid, "Nova has its service, but maps it to no cell, or to another node"
        )
    if is_ironic(root, providers) and (hosts.in_ironic is None or root.uuid in hosts.in_ironic):
        return Unclear(root.uuid, "Ironic may have the node, and Nova is moving it")
    tree = providers.tree_of(root.uuid)
    used = any(inventory.used for one in tree for inventory in one.inventories.values())
    below = [one.uuid for one in tree if one.parent is not None]
    return about(
        root,
        "dead_provider",
        f"Nova has neither the compute node nor its service{'; in use' if used else ''}",
        delete=() if used else (*below, root.uuid),
    )


def over_capacity(provider: ProviderShown, providers: Providers) -> Finding | None:
    """over_capacity: more is used than is offered. Ironic's nodes in use are reserved as well."""
    root = providers.by_uuid.get(provider.root, provider)
    if not providers.is_compute(provider.root) and provider.parent is None:
        return None
    over = {
        name: one
        for name, one in provider.inventories.items()
        if one.used > (one.total if is_ironic(root, providers) else capacity_there(one))
    }
    if not over:
        return None
    said = ", ".join(f"{one.used} of {capacity_there(one)} {name}" for name, one in over.items())
    return about(provider, "over_capacity", f"it gives {said}")


def disabled_trait(root: ProviderShown, providers: Providers, hosts: Hosts) -> Finding | None:
    """trait_without_owner: a service is enabled, but its trait keeps the scheduler away."""
    if DISABLED not in root.traits or root.uuid not in providers.hypervisors:
        return None
    service = hosts.services.get(providers.hypervisors[root.uuid].host)
    if service is None or service.is_unknown or not (service.is_enabled and service.is_up):
        return None
    return about(
        root,
        "trait_without_owner",
        f"{DISABLED}, although the service {service.host} is enabled and up",
    )


def empty_child(
    child: ProviderShown, parents: Collection[str], providers: Providers, now: datetime
) -> Finding | None:
    """child_without_evidence: nothing says what a provider below a compute node is for.

    `parents`: the providers that have children.
    """
    if child.parent is None or not providers.is_compute(child.root) or child.agent is not None:
        return None
    if child.inventories or child.traits or child.uuid in parents or child.reported:
        return None
    if now - child.updated_at < QUIET:
        return None
    return about(
        child,
        "child_without_evidence",
        "it has neither inventories nor traits nor children",
        host=providers.name_of(child.root),
        delete=(child.uuid,),
    )


def wrongs(root: str, providers: Providers, hosts: Hosts, now: datetime) -> list[Finding | Unclear]:
    """Return all that is wrong with a tree, or may be."""
    found: list[Finding | Unclear | None] = []
    if (one := providers.by_uuid.get(root)) is not None:
        found += [dead_provider(one, providers, hosts), disabled_trait(one, providers, hosts)]
    tree = providers.tree_of(root)
    parents = {one.parent for one in tree if one.parent is not None}
    for member in tree:
        found += [over_capacity(member, providers), empty_child(member, parents, providers, now)]
    return [one for one in found if one is not None]
