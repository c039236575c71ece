"""The order in which people read trees: each provider stands below its parent, by name."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol, TypeVar

P = TypeVar("P", bound=str)


class Node(Protocol):
    """A provider in a tree."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def parent(self) -> str | None:
        """The provider above it; None: it is a root."""
        ...


def in_tree_order(nodes: Mapping[P, Node]) -> Iterator[tuple[P, int]]:
    """Yield each provider once, with its depth.

    A parent that is not among the nodes does not count. In a loop, which a plan with violations may
    have, the first one by name counts as a root.
    """
    below: dict[str, list[P]] = {}
    roots: list[P] = []
    for uuid, node in nodes.items():
        if node.parent is not None and node.parent in nodes:
            below.setdefault(node.parent, []).append(uuid)
        else:
            roots.append(uuid)
    seen: set[P] = set()
    yield from _below(roots, below, nodes, seen)
    if len(seen) < len(nodes):
        for uuid in reversed(_last_first(nodes, nodes)):
            if uuid not in seen:
                yield from _below([uuid], below, nodes, seen)


def _below(
    roots: Iterable[P], below: Mapping[str, list[P]], nodes: Mapping[P, Node], seen: set[P]
) -> Iterator[tuple[P, int]]:
    """Yield roots and all below them. It does not recurse: trees may be deep."""
    rest = [(uuid, 0) for uuid in _last_first(roots, nodes)]
    while rest:
        uuid, depth = rest.pop()
        if uuid in seen:
            continue
        seen.add(uuid)
        yield uuid, depth
        rest += [(one, depth + 1) for one in _last_first(below.get(uuid, ()), nodes)]


def _last_first(uuids: Iterable[P], nodes: Mapping[P, Node]) -> list[P]:
    """Return providers by name, the last one first."""
    return sorted(uuids, key=lambda uuid: (nodes[uuid].name, uuid), reverse=True)
