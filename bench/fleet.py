"""The fleets that are loaded before the measurements: flat, nested and special hosts.

Flat hosts offer VCPU, nested ones PCPU, and each special one a class of its own, so that a query
concerns one kind only. Identifiers are counted, not random: all runs send the same requests.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from bench.wire import Conversation, request

FLAT, NESTED, HOT, FULL, ONE, SLOTS, MOVED, PORTS, AGENTS = range(1, 10)
"""The kinds of provider: the first number of their identifiers."""

Inventories = Mapping[str, Mapping[str, float]]

FLAT_HOST: Inventories = {
    "VCPU": {"total": 64, "allocation_ratio": 16.0},
    "MEMORY_MB": {"total": 262_144, "reserved": 4_096},
    "DISK_GB": {"total": 4_000},
}
HOT_HOST: Inventories = {
    name: {"total": 2_147_483_647} for name in ("SRIOV_NET_VF", "IPV4_ADDRESS", "NUMA_CORE")
}
"""The one provider of all contended claims; its capacity suffices for all of them."""
HOT_CLASSES = tuple(HOT_HOST)
ROOT: Inventories = {"DISK_GB": {"total": 8_000}}
CELL: Inventories = {"PCPU": {"total": 32}, "MEMORY_MB": {"total": 131_072}}
DEVICE: Inventories = {"SRIOV_NET_VF": {"total": 16}}

FULL_TOTAL = 100
"""Units of the host that receives more claims than it has capacity for."""
RACES = 100
"""Hosts with one unit each, one for each round of the race."""
SLOT_COUNT = 8
"""Children with one unit each, below the host on which eight groups are combined."""
PORT_COUNT = 12
"""Children with one unit each, below each of the hosts that compete for a limit."""
MOVED_COUNT = 100
"""Consumers that a reshape moves between a host and its child."""

FAST, SLOW = "HW_CPU_X86_AVX512F", "HW_CPU_X86_AVX2"
ZONES = 10


@dataclass(frozen=True)
class Provider:
    """One provider to be loaded."""

    uuid: str
    inventories: Inventories
    parent: str | None = None
    traits: tuple[str, ...] = ()
    aggregates: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The provider's name, derived from its UUID."""
        return f"host-{self.uuid}"


Host = list[Provider]
"""One tree, parents first."""


@dataclass(frozen=True)
class Fleet:
    """A number of hosts of one shape.

    With the shape `line` they are waiting tickets, with `agents` machines that register themselves.
    """

    shape: Literal["flat", "nested", "slots", "ports", "line", "agents"]
    size: int
    prepared: bool = False
    """Whether it is written to the database before the service starts; for flat fleets only."""

    @property
    def name(self) -> str:
        """The name of the fleet in reports."""
        return f"{self.shape} {self.size:,}".replace(",", " ")

    @property
    def providers(self) -> int:
        """The number of providers, without the special ones."""
        each = {
            **{"flat": 1, "nested": 5, "slots": 1 + SLOT_COUNT, "ports": 1 + PORT_COUNT},
            **{"line": 0, "agents": 2},
        }
        return self.size * each[self.shape]

    def hosts(self) -> Iterator[Host]:
        """Return all hosts in the order of loading."""
        make = {
            "flat": flat_host,
            "nested": nested_host,
            "slots": slots_host,
            "ports": ports_host,
        }[self.shape]
        return map(make, range(self.size))


def identifier(kind: int, number: int, part: int = 0) -> str:
    """Return the UUID of a provider."""
    return f"{kind:08x}-0000-4000-8000-{part:04x}{number:08x}"


def number_of(uuid: str) -> int:
    """Return the number of a provider's host."""
    return int(uuid[-8:], 16)


def zone(number: int) -> str:
    """Return the aggregate of all hosts whose numbers have the same last digit."""
    return f"000000aa-0000-4000-8000-{number % ZONES:012x}"


def flat_host(number: int) -> Host:
    """Return a host of one provider; every fourth host is fast."""
    trait = FAST if number % 4 == 0 else SLOW
    return [Provider(identifier(FLAT, number), FLAT_HOST, None, (trait,), (zone(number),))]


def nested_host(number: int) -> Host:
    """Return a host with two NUMA cells (1, 2) and a network device below each (3, 4)."""
    trait = FAST if number % 4 == 0 else SLOW
    uuids = [identifier(NESTED, number, part) for part in range(5)]
    return [
        Provider(uuids[0], ROOT, None, (), (zone(number),)),
        Provider(uuids[1], CELL, uuids[0], (trait,)),
        Provider(uuids[2], CELL, uuids[0], (trait,)),
        Provider(uuids[3], DEVICE, uuids[1]),
        Provider(uuids[4], DEVICE, uuids[2]),
    ]


def slots_host(number: int) -> Host:
    """Return a host with eight children of one unit each."""
    return _host_of_ones(SLOTS, number, "FPGA", SLOT_COUNT)


def ports_host(number: int) -> Host:
    """Return a host with twelve children of one unit each."""
    return _host_of_ones(PORTS, number, "SRIOV_NET_VF", PORT_COUNT)


def _host_of_ones(kind: int, number: int, name: str, count: int) -> Host:
    root = identifier(kind, number)
    children = (
        Provider(identifier(kind, number, part), {name: {"total": 1}}, root)
        for part in range(1, count + 1)
    )
    return [Provider(root, {}), *children]


def special_hosts() -> Iterator[Host]:
    """Return the hosts for special measurements, which are loaded with every flat fleet."""
    yield [Provider(identifier(HOT, 0), HOT_HOST)]
    yield [Provider(identifier(FULL, 0), {"PGPU": {"total": FULL_TOTAL}})]
    for number in range(RACES):
        yield [Provider(identifier(ONE, number), {"VGPU": {"total": 1}})]
    root = identifier(MOVED, 0)
    yield [
        Provider(root, {"MEM_ENCRYPTION_CONTEXT": {"total": MOVED_COUNT}}),
        Provider(identifier(MOVED, 0, 1), {}, root),
    ]


def loading(host: Host) -> Conversation:
    """Load one host as a reporter does: create it, then set inventories, traits and aggregates.

    Ends at the first error.
    """
    for provider in host:
        for step in _steps(provider):
            answer = yield step
            if answer.status >= 300:
                return answer.status
    return None


def _steps(provider: Provider) -> Iterator[bytes]:
    """Return the requests that make a provider; all but the first raise its generation."""
    path = f"/resource_providers/{provider.uuid}"
    about = {"uuid": provider.uuid, "name": provider.name, "parent_provider_uuid": provider.parent}
    yield _request("POST", "/resource_providers", about)
    generation = 0
    for name, content in (
        ("inventories", provider.inventories),
        ("traits", provider.traits),
        ("aggregates", provider.aggregates),
    ):
        if content:
            body = {"resource_provider_generation": generation, name: content}
            yield _request("PUT", f"{path}/{name}", body)
            generation += 1


def _request(method: str, path: str, body: object) -> bytes:
    return request(method, path, json.dumps(body).encode())
