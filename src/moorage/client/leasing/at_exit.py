"""Releases the leases that a program still has when it ends."""

from __future__ import annotations

import atexit
from typing import Protocol

from moorage.client.leasing.options import RELEASE_SECONDS
from moorage.client.run.clock import elapsed


class Releasable(Protocol):
    """A lease that can be released while the interpreter ends."""

    def release_at_exit(self, seconds: float) -> bool:
        """Release it with one try, without a new thread: Python starts none any more.

        `seconds`: to wait for an answer; 0: do not ask. Returns whether the server has answered.
        """
        ...


HELD: set[Releasable] = set()
"""The leases of this process."""


@atexit.register
def _release_all() -> None:
    """Release them; a server that does not answer delays the end only once, not by each lease."""
    left = RELEASE_SECONDS
    while HELD:
        began = elapsed()
        if not HELD.pop().release_at_exit(left):
            left = max(0.0, left - (elapsed() - began))
