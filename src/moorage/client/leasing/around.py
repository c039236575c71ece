"""The leases of the blocks around a piece of code: of the same thread and the same task.

A task or thread that a block starts may outlive the block: it is beside it.
"""

from __future__ import annotations

import asyncio
import threading
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


_AROUND: ContextVar[tuple[tuple[Held, object], ...]] = ContextVar("leases", default=())


def _place() -> object:
    try:
        return threading.get_ident(), asyncio.current_task()
    except RuntimeError:  # no loop runs in this thread
        return threading.get_ident(), None


def enter(held: Held) -> None:
    """Note that the code from here on has a lease."""
    leave(held)
    _AROUND.set((*_AROUND.get(), (held, _place())))


def leave(held: Held) -> None:
    """Note that it has released the lease."""
    _AROUND.set(tuple(one for one in _AROUND.get() if one[0] is not held and one[0].is_held))


def leases_here() -> list[str]:
    """Return the ids of the leases around this code, from the outermost to the innermost."""
    here = _place()
    return [one.id for one, place in _AROUND.get() if one.is_held and place == here]


def leases_before() -> list[str]:
    """Return the ids of the leases of the blocks that have started this task."""
    here = _place()
    return [one.id for one, place in _AROUND.get() if one.is_held and place != here]
