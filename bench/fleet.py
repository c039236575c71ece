"""The fleet that is loaded before anything is measured: flat hosts and nested ones.

Flat hosts offer VCPU, nested ones PCPU, so that a question is about one kind only. Identifiers are
counted, not random: every run loads and asks the same.
"""

import json
from collections.abc import Iterator, Mapping

from bench.wire import request

FLAT, NESTED, HOT = 1, 2, 3
"""The kinds of provider, the first figure of their identifiers."""

FLAT_HOST = {
    "VCPU": {"total": 64, "allocation_ratio": 16.0},
    "MEMORY_MB": {"total": 262_144, "reserved": 4_096, "allocation_ratio": 1.0},
    "DISK_GB": {"total": 4_000, "allocation_ratio": 1.0},
}
HOT_HOST = {name: {"total": 2_147_483_647} for name in FLAT_HOST}
"""One provider that every contended claim is on; it can hold them all."""
ROOT = {"DISK_GB": {"total": 8_000}}
CELL = {"PCPU": {"total": 32}, "MEMORY_MB": {"total": 131_072}}
DEVICE = {"SRIOV_NET_VF": {"total": 16}}

PARTS = 5
"""Providers in one nested tree: the host, two NUMA cells, a network device below each."""


def identifier(kind: int, number: int, part: int = 0) -> str:
    """Return the UUID of a provider."""
    return f"{kind:08x}-0000-4000-8000-{part:04x}{number:08x}"


def created(uuid: str, parent: str | None = None) -> bytes:
    """A request that creates a provider named as its identifier."""
    body = {"uuid": uuid, "name": f"host-{uuid}", "parent_provider_uuid": parent}
    return request("POST", "/resource_providers", json.dumps(body).encode())


def equipped(uuid: str, inventories: Mapping[str, Mapping[str, float]]) -> bytes:
    """A request that gives a new provider its inventories."""
    body = {"resource_provider_generation": 0, "inventories": inventories}
    path = f"/resource_providers/{uuid}/inventories"
    return request("PUT", path, json.dumps(body).encode())


def loading(flat: int, trees: int) -> list[Iterator[bytes]]:
    """All requests that load the fleet, in stages: each stage needs the one before it."""
    return [
        (created(uuid) for uuid in _roots(flat, trees)),
        (created(identifier(NESTED, n, p), _parent(n, p)) for p in (1, 2) for n in range(trees)),
        (created(identifier(NESTED, n, p), _parent(n, p)) for p in (3, 4) for n in range(trees)),
        _equipping(flat, trees),
    ]


def _roots(flat: int, trees: int) -> Iterator[str]:
    yield identifier(HOT, 0)
    yield from (identifier(FLAT, number) for number in range(flat))
    yield from (identifier(NESTED, number) for number in range(trees))


def _parent(number: int, part: int) -> str:
    """Cells (1, 2) stand below the host (0), devices (3, 4) below the cells."""
    return identifier(NESTED, number, max(0, part - 2))


def _equipping(flat: int, trees: int) -> Iterator[bytes]:
    yield equipped(identifier(HOT, 0), HOT_HOST)
    for number in range(flat):
        yield equipped(identifier(FLAT, number), FLAT_HOST)
    for number in range(trees):
        for part, inventories in enumerate((ROOT, CELL, CELL, DEVICE, DEVICE)):
            yield equipped(identifier(NESTED, number, part), inventories)
