"""Reads the catalog as of one revision, also with routes that do not name theirs."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from moorage.service.app import Service
from moorage.service.feed.watch import Cursor

TRIES = 3
"""How often something is read again because the catalog has changed meanwhile."""

T = TypeVar("T")


async def of_one_revision(service: Service, read: Callable[[], Awaitable[T]]) -> tuple[T, str]:
    """Return what is read, and the revision that it is of.

    While the catalog keeps changing, the last answer is returned, with the revisions from which and
    to which it was read.
    """
    for _ in range(TRIES):
        await service.index.current()  # otherwise the reading itself would move it
        before = as_of(service)
        found = await read()
        after = as_of(service)
        if before == after:
            return found, after
    return found, f"{before} to {after}"


def as_of(service: Service) -> str:
    """Return the cursor of the revision that the catalog is at."""
    return str(Cursor(service.index.epoch, service.index.revision))
