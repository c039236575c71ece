"""Fills an original by its own API, from a seed: trees, sharing providers, and odd consumers."""

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
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
    """Write so many providers and allocations, and return what was written.

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
    plans = list(_trees(made, aggregates))
    _at_once(url, [plan for plan, _ in plans], clients)
    _at_once(url, list(_consumers(made)), clients)
    _at_once(url, [after for _, after in plans if after is not None], clients)
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


def _trees(made: Generated, aggregates: list[str]) -> Any:
    """Yield how to write each tree of three, and what to change of it once it is in use."""
    number = 0
    while len(made.providers) < made.wanted[0]:
        root, numa, device = made.uuid(), made.uuid(), made.uuid()
        word = NAMES[number % len(NAMES)]
        name = f"{word}-{number}".ljust(200, "x") if "200" in word else f"{word}-{number}"
        made.providers += [root, numa, device]
        made.homes.append((root, numa))
        chance = made.random.random()
        traits = made.random.sample(TRAITS, made.random.randrange(3))
        those = made.random.sample(aggregates, made.random.randrange(3))
        ratio = made.random.choice([1.0, 1.1, 16.0, 0.9, 1.123456789, 1.5])
        sharing = number % 10 == 3
        yield (
            _tree(root, numa, device, name, traits, those, ratio, sharing),
            _shrunk(root) if chance < 0.1 else _renamed(root, name) if chance < 0.2 else None,
        )
        number += 1


def _tree(
    root: str,
    numa: str,
    device: str,
    name: str,
    traits: list[str],
    aggregates: list[str],
    ratio: float,
    sharing: bool,
) -> Work:
    def write(ask: Asking) -> None:
        ask.do("POST", "/resource_providers", {"name": name, "uuid": root})
        child = {"name": f"{numa} of the tree", "uuid": numa, "parent_provider_uuid": root}
        ask.do("POST", "/resource_providers", child)
        leaf = {"name": f"{device}", "uuid": device, "parent_provider_uuid": numa}
        ask.do("POST", "/resource_providers", leaf)
        vcpu = {"total": 64, "allocation_ratio": ratio, "reserved": 1}
        memory = {"total": 262_144, "reserved": 512, "min_unit": 1, "step_size": 1}
        _inventories(ask, root, 0, {"VCPU": vcpu, "MEMORY_MB": memory})
        _inventories(ask, numa, 0, {CUSTOM[0]: {"total": 10}, "VGPU": {"total": 8}})
        generation = 1
        if sharing:
            traits.append(SHARES)
        if traits:
            body = {"traits": traits, "resource_provider_generation": generation}
            ask.do("PUT", f"/resource_providers/{root}/traits", body)
            generation += 1
        if aggregates or sharing:
            body = {"aggregates": aggregates, "resource_provider_generation": generation}
            ask.do("PUT", f"/resource_providers/{root}/aggregates", body)

    return write


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


def _consumers(made: Generated) -> Any:
    """Yield requests that write consumers; every fifth is of an old client, without a type."""
    rows = 0
    while rows < made.wanted[1]:
        batch: dict[str, Any] = {}
        old = made.random.random() < 0.2
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
