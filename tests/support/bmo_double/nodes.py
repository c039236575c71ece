"""What a provisioner needs of nodes, wherever they are."""

from dataclasses import dataclass
from typing import Protocol


class Transient(Exception):
    """Something failed that is tried again with the back-off of the queue: an error in Go."""


@dataclass(frozen=True)
class Seen:
    """A node as it was read; states have the names of Ironic's API."""

    name: str
    state: str
    error: str = ""
    inspected: bool = False
    powered: bool = False


class Nodes(Protocol):
    """Nodes by the name of their host. Everything may raise Transient."""

    async def get(self, name: str) -> Seen | None:
        """Return a node; None: there is none."""

    async def create(self, name: str) -> None:
        """Enrol a node."""

    async def change(self, name: str, target: str) -> bool:
        """Let a node change its state; False: it is busy, or somebody holds it back (409)."""

    async def power(self, name: str, *, on: bool) -> bool:
        """Switch a node; False: it is busy (409)."""

    async def remove(self, name: str) -> None:
        """Remove a node."""

    async def all(self) -> list[Seen]:
        """Return all nodes."""
