"""The leases of the blocks around a piece of code: of this thread, or of the tasks around this one.

A new task, and `asyncio.to_thread`, continue the block that starts them; a new thread does not.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Protocol


class Held(Protocol):
    """A lease of a block."""

    @property
    def id(self) -> str:
        """The lease's id."""
        ...

    @property
    def is_held(self) -> bool:
        """Whether it was granted to this process, or its parent, and not released here."""
        ...


_AROUND: ContextVar[tuple[Held, ...]] = ContextVar("leases", default=())


def enter(held: Held) -> None:
    """Note that the code from here on has a lease."""
    _AROUND.set((*(one for one in _AROUND.get() if one.is_held and one is not held), held))


def leave(held: Held) -> None:
    """Note that it has released the lease."""
    _AROUND.set(tuple(one for one in _AROUND.get() if one is not held))


def leases_here() -> list[str]:
    """Return the ids of the leases around this code, from the outermost to the innermost."""
    return [one.id for one in _AROUND.get() if one.is_held]
