"""Random machines with devices (MIG, PCI, NUMA), and queries for several related parts of them.

Unlike `world.py`, which is small and has everything, these trees have the shape of real machines:
many devices that are nearly alike, and conditions that relate groups to each other. `planted` hides
a solution, so that a query on a machine of any size is known to have an answer.
"""

from random import Random

from msgspec.structs import replace

from moorage.core.clock import Instant
from moorage.core.ids import ProviderId
from moorage.core.ledger.model import SHARING_TRAIT, Inventory, Provider, ProviderRecord, Tags
from moorage.core.ledger.requests import AggregateFilter, CandidateQuery, Group, TraitFilter
from tests.core.ledger.search.naive import Records
from tests.core.ledger.search.world import AGGREGATES, uuid_of

KINDS = ("mig", "pci", "numa", "nested")
NO_TRAITS = frozenset[str]()


class Machines:
    """Machines that grow provider by provider."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.records: Records = {}

    def add(
        self,
        parent: ProviderId | None,
        traits: frozenset[str] = NO_TRAITS,
        aggregates: frozenset[str] = NO_TRAITS,
        **totals: int,
    ) -> ProviderId:
        """Add a provider with these totals; return its UUID."""
        uuid, now = uuid_of(len(self.records)), Instant(0)
        root = uuid if parent is None else self.records[parent].provider.root
        provider = Provider(uuid, f"name-{len(self.records)}", 0, parent, root, now, now)
        inventories = {name: Inventory(total) for name, total in totals.items()}
        tags = Tags(traits, aggregates)  # type: ignore[arg-type] # text is an id here
        self.records[uuid] = ProviderRecord(provider, inventories, tags, 0)
        return uuid

    def sharing(self) -> ProviderId:
        """Add a provider of memory and devices that serves other trees, too."""
        aggregates = frozenset(self.random.sample(AGGREGATES, 2))
        traits = self._model() | {SHARING_TRAIT}
        return self.add(None, traits, aggregates, MEMORY_MB=4, CUSTOM_VF=2)

    def machine(self, kind: str, size: int) -> ProviderId:
        """Add a machine with up to `size` devices, each of up to `size` parts."""
        random = self.random
        aggregates = frozenset(name for name in AGGREGATES if random.random() < 0.4)
        host = self.add(None, aggregates=aggregates, MEMORY_MB=8 * size)
        for _ in range(random.randint(max(1, size // 2), size)):
            getattr(self, f"_{kind}")(host, size)
        return host

    def _model(self) -> frozenset[str]:
        return frozenset({self.random.choice(("CUSTOM_M1", "CUSTOM_M1", "CUSTOM_M2"))})

    def _mig(self, host: ProviderId, size: int) -> None:
        gpu = self.add(host, self._model() | {"CUSTOM_GPU"})
        for _ in range(self.random.randint(1, size)):
            self.add(gpu, CUSTOM_SLICE=self.random.choice((1, 1, 1, 2)))

    def _pci(self, host: ProviderId, size: int) -> None:
        port = self.add(host, frozenset({"CUSTOM_ROOT"}))
        for _ in range(self.random.randint(1, size)):
            self.add(port, self._model(), CUSTOM_VF=self.random.choice((1, 2, 4)))

    def _numa(self, host: ProviderId, size: int) -> None:
        cell = self.add(host, frozenset({"HW_NUMA_ROOT"}), VCPU=2 * size, CUSTOM_PAGES=size)
        for _ in range(self.random.randint(0, max(1, size // 2))):
            self.add(cell, self._model() | {"CUSTOM_GPU"}, VGPU=self.random.choice((1, 1, 4)))

    def _nested(self, host: ProviderId, size: int) -> None:
        above = host
        for _ in range(self.random.randint(1, 3)):
            above = self.add(above, self._model(), CUSTOM_VF=1)
            self.add(above, self._model(), CUSTOM_VF=self.random.choice((1, 2)))

    def use(self, likely: float) -> None:
        """Use a random part of inventories."""
        for uuid, record in self.records.items():
            for name, inventory in record.inventories.items():
                if self.random.random() < likely:
                    self.set_used(uuid, name, self.random.randint(0, inventory.total))

    def use_one(self) -> None:
        """Use one more unit of some inventory that has any."""
        left = [
            (uuid, name, inventory.used)
            for uuid, record in self.records.items()
            for name, inventory in record.inventories.items()
            if inventory.used < inventory.total
        ]
        if left:
            uuid, name, used = self.random.choice(left)
            self.set_used(uuid, name, used + 1)

    def set_used(self, uuid: ProviderId, name: str, used: int) -> None:
        """Set the used units of an inventory."""
        record = self.records[uuid]
        inventories = {**record.inventories, name: replace(record.inventories[name], used=used)}
        self.records[uuid] = replace(record, inventories=inventories)

    def below(self, top: ProviderId) -> list[ProviderId]:
        """Return a provider and all below it; parents come before their children."""
        found = {top: None}
        for uuid, record in self.records.items():
            if record.provider.parent in found:
                found[uuid] = None
        return list(found)


def asked_of(random: Random, record: ProviderRecord, suffix: str, care: float) -> Group:
    """Return a group that a provider can serve when it is empty."""
    names = sorted(record.inventories)
    wanted = random.sample(names, random.randint(1, len(names))) if names else []
    amounts = {
        name: random.randint(1, max(1, record.inventories[name].total // 2)) for name in wanted
    }
    traits = sorted(record.tags.traits)
    required = tuple(frozenset({t}) for t in traits if not amounts or random.random() < care)
    forbidden = frozenset({"CUSTOM_M1", "CUSTOM_M2"} - record.tags.traits)
    few = random.random() < care / 2
    return Group(suffix, amounts, TraitFilter(required, forbidden if few else frozenset()))


def related(random: Random, machines: Machines, care: float) -> CandidateQuery:
    """Return a query of a few groups as of any providers, with overlapping conditions on them."""
    uuids = list(machines.records)
    suffixes = [f"_{letter}" for letter in "ABCD"[: random.randint(2, 4)]]
    subtrees = tuple(
        frozenset(random.sample(suffixes, random.randint(1, len(suffixes))))
        for _ in range(random.choice((1, 1, 2, 3)))
    )
    groups: list[Group] = []
    for suffix in suffixes:
        group = asked_of(random, machines.records[random.choice(uuids)], suffix, care)
        if any(suffix in names for names in subtrees) and random.random() < 0.3:
            group = replace(group, resources={})
        groups.append(demanding(random, group, uuids, care))
    groups = [g for g in groups if g.resources or any(g.suffix in names for names in subtrees)]
    named = frozenset(group.suffix for group in groups)
    if random.random() < 0.5 or not any(group.resources for group in groups):
        wide = asked_of(random, machines.records[random.choice(uuids[:2])], "", 0.0)
        amounts = wide.resources or {"MEMORY_MB": 1}
        groups.append(demanding(random, replace(wide, resources=amounts), uuids, care / 2))
    root = frozenset({"CUSTOM_M1"}) if random.random() < care / 4 else frozenset()
    return CandidateQuery(
        tuple(groups),
        random.choice(("none", "isolate")),
        tuple(names & named for names in subtrees if names & named),
        TraitFilter((), root),
    )


def demanding(random: Random, group: Group, uuids: list[ProviderId], care: float) -> Group:
    """Return the group, perhaps with conditions on its tree and its aggregates."""
    if random.random() < care / 4:
        group = replace(group, in_tree=random.choice(uuids))
    if random.random() < care / 4:
        names = frozenset(random.sample(AGGREGATES, 2))
        group = replace(group, aggregates=AggregateFilter((names,), frozenset()))
    elif random.random() < care / 4:
        names = frozenset(random.sample(AGGREGATES, 1))
        group = replace(group, aggregates=AggregateFilter((), names))
    return group


def planted(random: Random, machines: Machines, host: ProviderId, pairs: int) -> CandidateQuery:
    """Return a query with up to `pairs` related sets of groups, which the machine can just serve.

    Every condition holds for one hidden choice of providers. The rest of the machine is used up at
    random, so that little else can serve it.
    """
    tops = [uuid for uuid in machines.below(host) if len(machines.below(uuid)) > 1]
    groups: list[Group] = []
    subtrees: list[frozenset[str]] = []
    chosen: list[ProviderId] = []
    given: dict[tuple[ProviderId, str], int] = {}
    for number in range(pairs):
        top = random.choice(tops)
        members = [top, *random.sample(machines.below(top)[1:], 1)]
        members += random.choices(machines.below(top)[1:], k=random.randint(0, 1))
        these: list[Group] = []
        for place, uuid in enumerate(members):
            group = asked_of(random, machines.records[uuid], f"_{number}_{place}", 0.5)
            if place == 0 and random.random() < 0.7:
                group = replace(group, resources={})
            these.append(group)
        needed = [
            (u, n, a) for u, g in zip(members, these, strict=True) for n, a in g.resources.items()
        ]
        sums = dict(given)
        for uuid, name, amount in needed:
            sums[uuid, name] = sums.get((uuid, name), 0) + amount
        if any(
            n > machines.records[uuid].inventories[name].total for (uuid, name), n in sums.items()
        ):
            continue
        given = sums
        groups += these
        chosen += members
        suffixes = [group.suffix for group in these]
        subtrees.append(frozenset(suffixes))
        if len(suffixes) > 2 and random.random() < 0.3:
            subtrees.append(frozenset(suffixes[:2]))
    for uuid in machines.below(host):
        for name, inventory in machines.records[uuid].inventories.items():
            left = inventory.total - given.get((uuid, name), 0)
            used = left if random.random() < 0.6 else random.randint(0, left)
            machines.set_used(uuid, name, used)
    policy = "isolate" if len(set(chosen)) == len(chosen) and random.random() < 0.5 else "none"
    return CandidateQuery(tuple(groups), policy, tuple(subtrees))
