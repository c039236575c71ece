"""Releases the leases that a program still has when it ends."""

from __future__ import annotations

import atexit
from typing import Protocol


class Releasable(Protocol):
    """A lease that can be released while the interpreter ends."""

    def release_at_exit(self) -> None:
        """Release it without a new thread: Python starts none any more."""
        ...


HELD: set[Releasable] = set()
"""The leases of this process."""


@atexit.register
def _release_all() -> None:
    while HELD:
        HELD.pop().release_at_exit()
