"""Fills an original by its own API, from a seed: trees, sharing providers, and odd consumers."""

import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from tests.moving.support.original import Asking

NAMES = (
    "compute",
    "größe",
    "вычислитель",
    "计算节点",
    "計算ノード",
    "계산",
    "حاسوب",
    "מחשב",
    "κόμβος",
    "संगणक",
    "ô-1.example.org",
    'a "quoted" \\ name',
    "a name of 200 characters ",
)
TYPES = ("INSTANCE", "MIGRATION", "RESERVATION_1")
TRAITS = ("HW_CPU_X86_AVX2", "COMPUTE_VOLUME_ATTACH", "CUSTOM_GOLD", "CUSTOM_SILVER_2")
SHARES = "MISC_SHARES_VIA_AGGREGATE"
CUSTOM = ("CUSTOM_BAREMETAL_GOLD", "CUSTOM_FPGA_1")
UNKNOWN = "00000000-0000-0000-0000-000000000000"
CONSUMERS_AT_ONCE = 50
TREES_AT_ONCE = 20
CLIENTS = 4


class Generated:
    """What was written: the UUIDs, for requests about them."""

    def __init__(self, seed: int, providers: int, allocations: int) -> None:
        self.random = random.Random(seed)
        self.providers: list[str] = []
        self.consumers: list[str] = []
        self.projects: list[str] = [self.uuid() for _ in range(20)]
        self.wanted = providers, allocations
        self.homes: list[tuple[str, str]] = []
        """Roots, each with a child."""

    def uuid(self) -> str:
        """Return a new UUID, the same for the same seed."""
        return str(UUID(int=self.random.getrandbits(128), version=4))


def fill(
    url: str, seed: int, providers: int, allocations: int, clients: int = CLIENTS
) -> Generated:
    """Write this many providers and allocations, and return what was written.

    On SQLite the original needs one client at a time.
    """
    made = Generated(seed, providers, allocations)
    ask = Asking(url)
    for name in (*TRAITS, "CUSTOM_UNUSED"):
        if name.startswith("CUSTOM_"):
            ask.do("PUT", f"/traits/{name}")
    for name in (*CUSTOM, "CUSTOM_UNUSED"):
        ask.do("PUT", f"/resource_classes/{name}")
    aggregates = [made.uuid() for _ in range(max(3, providers // 40))]
    trees = list(_trees(made, aggregates))
    _at_once(url, [tree.write for tree in trees], clients)
    for first in range(0, len(trees), TREES_AT_ONCE):
        _offer(ask, trees[first : first + TREES_AT_ONCE])
    for write in _consumers(made):
        write(ask)
    _at_once(url, [after for tree in trees if (after := tree.afterwards()) is not None], clients)
    return made


Work = Callable[[Asking], None]


def _at_once(url: str, work: list[Work], clients: int) -> None:
    """Do the work with several clients, each on its own connection."""

    def part(number: int) -> None:
        ask = Asking(url)
        for one in work[number::clients]:
            one(ask)

    with ThreadPoolExecutor(clients) as pool:
        list(pool.map(part, range(clients)))


@dataclass
class Tree:
    """A root, what is in it, and what is in that."""

    number: int
    uuids: tuple[str, str, str]
    name: str
    traits: list[str]
    aggregates: list[str]
    ratio: float
    generation: int = 0

    def write(self, ask: Asking) -> None:
        """Create the providers, with traits and aggregates of the root."""
        root, numa, device = self.uuids
        ask.do("POST", "/resource_providers", {"name": self.name, "uuid": root})
        child = {"name": f"{numa} of the tree", "uuid": numa, "parent_provider_uuid": root}
        ask.do("POST", "/resource_providers", child)
        leaf = {"name": device, "uuid": device, "parent_provider_uuid": numa}
        ask.do("POST", "/resource_providers", leaf)
        for what, those in (("traits", self.traits), ("aggregates", self.aggregates)):
            if those:
                body = {what: those, "resource_provider_generation": self.generation}
                ask.do("PUT", f"/resource_providers/{root}/{what}", body)
                self.generation += 1

    def offered(self) -> dict[str, Any]:
        """Return the inventories of the providers, for a reshape."""
        vcpu = {"total": 64, "allocation_ratio": self.ratio, "reserved": 1}
        memory = {"total": 262_144, "reserved": 512, "min_unit": 1, "step_size": 1}
        return {
            self.uuids[0]: {
                "resource_provider_generation": self.generation,
                "inventories": {"VCPU": vcpu, "MEMORY_MB": memory},
            },
            self.uuids[1]: {
                "resource_provider_generation": 0,
                "inventories": {CUSTOM[0]: {"total": 10}, "VGPU": {"total": 8}},
            },
        }

    def afterwards(self) -> "Work | None":
        """Return what to change of it once it is in use."""
        chosen = {1: _shrunk(self.uuids[0]), 2: _renamed(self.uuids[0], self.name)}
        return chosen.get(self.number % 10)


def _trees(made: Generated, aggregates: list[str]) -> Iterator[Tree]:
    while len(made.providers) < made.wanted[0]:
        number = len(made.homes)
        uuids = made.uuid(), made.uuid(), made.uuid()
        word = NAMES[number % len(NAMES)]
        name = f"{word}-{number}".ljust(200, "x") if "200" in word else f"{word}-{number}"
        made.providers += uuids
        made.homes.append(uuids[:2])
        traits = made.random.sample(TRAITS, made.random.randrange(3))
        those = made.random.sample(aggregates, made.random.randrange(3))
        if number % 10 == 3:
            traits.append(SHARES)
            those = those or aggregates[:1]
        ratio = made.random.choice([1.0, 1.1, 16.0, 0.9, 1.123456789, 1.5])
        yield Tree(number, uuids, name, traits, those, ratio)


def _offer(ask: Asking, trees: list[Tree]) -> None:
    """Give many providers their inventories at once, which the original does much faster."""
    offers = [tree.offered() for tree in trees]
    inventories = {uuid: offered for offer in offers for uuid, offered in offer.items()}
    ask.do("POST", "/reshaper", {"inventories": inventories, "allocations": {}})


def _inventories(ask: Asking, uuid: str, generation: int, inventories: dict[str, Any]) -> None:
    body = {"resource_provider_generation": generation, "inventories": inventories}
    ask.do("PUT", f"/resource_providers/{uuid}/inventories", body)


def _shrunk(root: str) -> Work:
    """Return what makes a provider hold more than it has."""

    def change(ask: Asking) -> None:
        generation = ask.get(f"/resource_providers/{root}")["generation"]
        vcpu = {"total": 2, "allocation_ratio": 0.5}
        memory = {"total": 600, "reserved": 512}
        _inventories(ask, root, generation, {"VCPU": vcpu, "MEMORY_MB": memory})

    return change


def _renamed(root: str, name: str) -> Work:
    def change(ask: Asking) -> None:
        body = {"name": f"{name[:180]} renamed", "parent_provider_uuid": None}
        ask.do("PUT", f"/resource_providers/{root}", body)

    return change


def _consumers(made: Generated) -> Iterator[Work]:
    """Yield requests that write consumers; every fifth is of an old client, without a type."""
    rows = 0
    while rows < made.wanted[1]:
        batch: dict[str, Any] = {}
        old = made.random.random() < 0.2 or not made.consumers
        while len(batch) < CONSUMERS_AT_ONCE and rows < made.wanted[1]:
            root, numa = made.homes[len(made.consumers) % len(made.homes)]
            allocations: dict[str, Any] = {root: {"resources": {"VCPU": 1, "MEMORY_MB": 64}}}
            rows += 2
            if len(made.consumers) % 7 == 0 and len(made.consumers) < len(made.homes):
                allocations[numa] = {"resources": {CUSTOM[0]: 1}}
                rows += 1
            uuid = made.uuid()
            made.consumers.append(uuid)
            batch[uuid] = {
                "allocations": allocations,
                "project_id": made.random.choice([*made.projects, UNKNOWN, "проект é"]),
                "user_id": made.random.choice([*made.projects, UNKNOWN]),
                "consumer_generation": None,
                **({} if old else {"consumer_type": made.random.choice(TYPES)}),
            }
        yield _posted(batch, "1.28" if old else "1.38")


def _posted(batch: dict[str, Any], version: str) -> Work:
    def write(ask: Asking) -> None:
        ask.do("POST", "/allocations", batch, version=version)

    return write
