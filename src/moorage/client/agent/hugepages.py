"""The pools of huge pages of each NUMA node, as the kernel shows them in sysfs."""

from __future__ import annotations

import re
from typing import NamedTuple
from uuid import UUID, uuid5

from moorage.client.agent.api_types import Amounts, Part
from moorage.client.agent.kernel_files import KernelFiles

NODES = "devices/system/node"
GLOBAL_POOLS = "kernel/mm/hugepages"
NODE = re.compile(r"node(\d+)")
MEM_TOTAL = re.compile(r"MemTotal:\s+(\d+) kB")


class PageSize(NamedTuple):
    """A size of huge pages: its resource class, and how many pages one step adds (1 GiB)."""

    resource_class: str
    kilobytes: int
    step: int
    text: str


SIZES = (
    PageSize("CUSTOM_HUGEPAGES_1GB", 1048576, 1, "1 GiB"),
    PageSize("CUSTOM_HUGEPAGES_2MB", 2048, 512, "2 MiB"),
)
"""In the order in which pools grow: pages of 1 GiB need contiguous memory, so they come first."""


class Pool(NamedTuple):
    """The pages of one size on one NUMA node; `folder` is below the root of sysfs.

    `eligible`: as many pages as fit into the physical memory of the node.
    """

    node: int
    size: PageSize
    folder: str
    eligible: int


class HugePages:
    """Reads and resizes the pools. Every method raises OSError: the kernel refuses it."""

    def __init__(self, files: KernelFiles) -> None:
        self._files = files

    def pools(self) -> tuple[Pool, ...]:
        """Return all pools in the order of growing; without NUMA nodes, those of the system.

        Raises ValueError: a file has unexpected contents.
        """
        nodes = [
            (int(found[1]), name)
            for name in self._files.names(self._files.sys(NODES))
            if (found := NODE.fullmatch(name))
        ]
        pools = []
        for node, name in sorted(nodes):
            memory = self._memory(self._files.sys(NODES, name, "meminfo"))
            pools += self._pools_in(node, f"{NODES}/{name}/hugepages", memory)
        if not nodes:
            memory = self._memory(self._files.proc("meminfo"))
            pools = self._pools_in(0, GLOBAL_POOLS, memory)
        return tuple(sorted(pools, key=lambda pool: (SIZES.index(pool.size), pool.node)))

    def _pools_in(self, node: int, folder: str, memory: int) -> list[Pool]:
        """Return the pools of a node; a processor may not support all sizes."""
        names = self._files.names(self._files.sys(folder))
        return [
            Pool(node, size, f"{folder}/hugepages-{size.kilobytes}kB", memory // size.kilobytes)
            for size in SIZES
            if f"hugepages-{size.kilobytes}kB" in names and memory >= size.kilobytes
        ]

    def _memory(self, path: str) -> int:
        """Return the physical memory in kilobytes."""
        found = MEM_TOTAL.search(self._files.read(path))
        if found is None:
            raise ValueError(f"{path} has no MemTotal")
        return int(found[1])

    def actual(self, pool: Pool) -> int:
        """Return the number of pages of a pool that are there to stay.

        Surplus pages are still in use, but the kernel takes them away as soon as they are free.
        """
        return max(0, self._number(pool, "nr") - self._number(pool, "surplus"))

    def resize(self, pool: Pool, pages: int) -> int:
        """Ask for a number of pages; return what the pool has then.

        The kernel reports success also if it has obtained only a part, so this reads it back.
        """
        self._files.write(self._path(pool, "nr"), f"{pages}\n")
        return self.actual(pool)

    def compact(self) -> None:
        """Compact the memory of all nodes: contiguous pages become free. May take seconds."""
        self._files.write(self._files.proc("sys/vm/compact_memory"), "1\n")

    def _number(self, pool: Pool, name: str) -> int:
        return int(self._files.read(self._path(pool, name)))

    def _path(self, pool: Pool, name: str) -> str:
        return self._files.sys(pool.folder, f"{name}_hugepages")


def provider_of(agent: UUID, pool: Pool) -> str:
    """Return the UUID of the provider of a pool: derived, so that nobody has to store it."""
    return str(uuid5(agent, part_name(pool.node)))


def part_name(node: int) -> str:
    """Return the name of the part of the machine that a NUMA node is."""
    return f"numa{node}"


def parts_of(agent: UUID, pools: tuple[Pool, ...]) -> tuple[Part, ...]:
    """Return a part for each NUMA node that has pools, in their order."""
    nodes: dict[int, list[Pool]] = {}
    for pool in sorted(pools, key=lambda pool: pool.node):
        nodes.setdefault(pool.node, []).append(pool)
    return tuple(
        Part(
            provider_of(agent, found[0]),
            part_name(node),
            tuple((pool.size.resource_class, pool.eligible) for pool in found),
        )
        for node, found in nodes.items()
    )


def amounts_of(agent: UUID, sizes: dict[Pool, int]) -> Amounts:
    """Return the sizes of pools by provider and resource class."""
    amounts: Amounts = {}
    for pool, pages in sizes.items():
        amounts.setdefault(provider_of(agent, pool), {})[pool.size.resource_class] = pages
    return amounts
