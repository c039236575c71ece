"""Idempotency keys: chosen by the client before the first try, so that requests can be repeated.

A key identifies one attempt. After its lease has ended, the next attempt needs another key.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Protocol
from uuid import uuid4

from moorage.client.run.locks import lock_path


class IdempotencyKeys(Protocol):
    """The key of the current attempt.

    `fresh`: no earlier process can have used it, so what it gives belongs to this attempt.
    """

    fresh: bool

    def current(self) -> str:
        """Return the key: the same each time, with `FileKey` even after a crash."""
        ...

    def renew(self) -> bool:
        """Choose a new key; return False if the key may not change."""
        ...

    def spend(self) -> None:
        """Drop the key: its lease was released."""
        ...


class OwnKey:
    """A key in memory. If the process dies, its lease ends by its TTL."""

    fresh = True

    def __init__(self) -> None:
        self._key = str(uuid4())

    def current(self) -> str:
        """See `IdempotencyKeys`."""
        return self._key

    def renew(self) -> bool:
        """See `IdempotencyKeys`."""
        self._key = str(uuid4())
        return True

    def spend(self) -> None:
        """See `IdempotencyKeys`."""


class GivenKey:
    """A key that the caller has chosen."""

    fresh = False

    def __init__(self, key: str) -> None:
        self._key = key

    def current(self) -> str:
        """See `IdempotencyKeys`."""
        return self._key

    def renew(self) -> bool:
        """See `IdempotencyKeys`."""
        return False

    def spend(self) -> None:
        """See `IdempotencyKeys`."""


class StandingKey(GivenKey):
    """A key of the caller for any number of attempts, see `LeaseRequest.standing`."""

    def renew(self) -> bool:
        """Keep the key: the server makes a new lease under it."""
        return True


class FileKey:
    """A key in a file that survives the process: a new start with it gets the same lease.

    Use it in a block of `locks.locked`: two processes with the same key would share one lease.
    Every method raises OSError.
    """

    fresh = False

    def __init__(self, path: str) -> None:
        self._path = path

    def current(self) -> str:
        """See `IdempotencyKeys`."""
        try:
            with open(self._path, encoding="utf-8") as file:
                key = file.read().strip()
        except FileNotFoundError:
            key = ""
        return key or self._written()

    def renew(self) -> bool:
        """See `IdempotencyKeys`."""
        self._written()
        return True

    def spend(self) -> None:
        """See `IdempotencyKeys`."""
        for path in (self._path, lock_path(self._path)):
            with suppress(FileNotFoundError):
                os.unlink(path)

    def _written(self) -> str:
        key = str(uuid4())
        from moorage.client.run.private_file import write_private  # deferred: few runs have a file

        write_private(self._path, f"{key}\n")
        return key
