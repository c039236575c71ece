"""The ledger as an audit sees it: trees of providers, and what each consumer holds. Pure."""

from collections import Counter
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from moorage.integrations.nova.facts import Hypervisor
from moorage.wire.providers import ConsumerShown, ProviderShown

COMPUTE_NODE: Final = "COMPUTE_NODE"
"""The trait that nova gives the root of each compute node."""


@dataclass(frozen=True, slots=True)
class Held:
    """A consumer, and what it holds, by provider and class."""

    uuid: str
    generation: int
    type: str | None
    holdings: Mapping[str, Mapping[str, int]]

    def amounts(self) -> dict[str, int]:
        """Return the sums of all that it holds, by class."""
        sums: dict[str, int] = {}
        for classes in self.holdings.values():
            for name, amount in classes.items():
                sums[name] = sums.get(name, 0) + amount
        return sums


def held_of(consumer: ConsumerShown) -> Held:
    """Return a consumer with its holdings."""
    holdings = {one.provider: one.resources for one in consumer.allocations}
    return Held(consumer.uuid, consumer.generation, consumer.type, holdings)


@dataclass(frozen=True)
class Providers:
    """All providers, and which of them are Nova's compute nodes."""

    by_uuid: dict[str, ProviderShown]
    hypervisors: Mapping[str, Hypervisor] = field(default_factory=dict)
    """What Nova knows, by UUID, which is that of the root."""

    def __post_init__(self) -> None:
        """Index the hypervisors by their names, and the providers by their roots."""
        homes = {(one.host, one.name): one.uuid for one in self.hypervisors.values()}
        # A node of Ironic's may be another service's meanwhile; its name is its own.
        names = Counter(one.name for one in self.hypervisors.values())
        unique = (one for one in self.hypervisors.values() if names[one.name] == 1)
        homes |= {("", one.name): one.uuid for one in unique}
        trees: dict[str, list[ProviderShown]] = {}
        for one in self.by_uuid.values():
            trees.setdefault(one.root, []).append(one)
        object.__setattr__(self, "_homes", homes)
        object.__setattr__(self, "_trees", trees)

    def root_of(self, provider: str) -> str:
        """Return the root of a provider; one that is unknown is a root."""
        found = self.by_uuid.get(provider)
        return provider if found is None else found.root

    def tree_of(self, root: str) -> list[ProviderShown]:
        """Return a root and all that is below it."""
        trees: dict[str, list[ProviderShown]] = self.__dict__["_trees"]
        return trees.get(root, [])

    def home_of(self, host: str, node: str) -> str | None:
        """Return the root of a compute node; None: Nova did not name it."""
        homes: dict[tuple[str, str], str] = self.__dict__["_homes"]
        return homes.get((host, node)) or homes.get(("", node))

    def is_compute(self, root: str) -> bool:
        """Return whether a root is a compute node, of Nova's or of one that it had."""
        found = self.by_uuid.get(root)
        return root in self.hypervisors or (found is not None and COMPUTE_NODE in found.traits)

    def names_of(self, root: str) -> frozenset[str]:
        """Return the names of a compute node and of its service, as migrations name them."""
        found, known = self.by_uuid.get(root), self.hypervisors.get(root)
        names = {known.name, known.host} if known else set()
        return frozenset(names | ({found.name} if found else set())) - {""}

    def name_of(self, provider: str) -> str:
        """Return the name of a provider, for people."""
        found = self.by_uuid.get(provider)
        return provider if found is None else found.name

    def compute_roots(self, held: Held) -> set[str]:
        """Return the compute nodes of which a consumer holds something."""
        roots = {self.root_of(provider) for provider in held.holdings}
        return {root for root in roots if self.is_compute(root)}

    def on_root(self, held: Held, root: str) -> dict[str, Mapping[str, int]]:
        """Return what a consumer holds of one tree."""
        return {
            provider: classes
            for provider, classes in held.holdings.items()
            if self.root_of(provider) == root
        }

    def with_shown(self, shown: Mapping[str, ProviderShown | None]) -> "Providers":
        """Return the same, with these providers as they are now; None: such a one is gone."""
        by_uuid = {uuid: one for uuid, one in self.by_uuid.items() if uuid not in shown}
        by_uuid |= {uuid: one for uuid, one in shown.items() if one is not None}
        return Providers(by_uuid, self.hypervisors)

    def known_by(self, hypervisors: Iterable[Hypervisor]) -> "Providers":
        """Return the same providers beside another list of hypervisors."""
        return Providers(self.by_uuid, {one.uuid: one for one in hypervisors})


def service_named(node: str, services: Container[str]) -> str | None:
    """Return which of these services has a compute node: its own name may have a domain."""
    name = node
    while name:
        if name in services:
            return name
        name, _, _ = name.rpartition(".")
    return None
