"""Idempotency keys: made by us and kept before the first try, so that a lost answer costs nothing.

A key names one attempt. Once its lease has ended the next attempt needs another.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from typing import Protocol
from uuid import uuid4

from moorage.client.run.locks import lock_path


class Keys(Protocol):
    """The key of the present attempt."""

    def current(self) -> str:
        """Return it; whoever asks twice, or after a crash, gets the same."""
        ...

    def renew(self) -> bool:
        """Take another; False: the one there is was chosen by somebody else."""
        ...

    def spend(self) -> None:
        """Forget it: its lease was given back."""
        ...


class OwnKey:
    """A key in memory. Who loses it by dying leaves a lease that ends by its TTL."""

    def __init__(self) -> None:
        self._key = str(uuid4())

    def current(self) -> str:
        """See `Keys`."""
        return self._key

    def renew(self) -> bool:
        """See `Keys`."""
        self._key = str(uuid4())
        return True

    def spend(self) -> None:
        """See `Keys`."""


class GivenKey:
    """A key that the caller chose."""

    def __init__(self, key: str) -> None:
        self._key = key

    def current(self) -> str:
        """See `Keys`."""
        return self._key

    def renew(self) -> bool:
        """See `Keys`."""
        return False

    def spend(self) -> None:
        """See `Keys`."""


class FileKey:
    """A key in a file that outlives us: who starts again with it gets the same lease.

    Stands in a block of `locks.locked`: of two who had it at once both would have that lease.
    Every method raises OSError.
    """

    def __init__(self, path: str) -> None:
        self._path = path

    def current(self) -> str:
        """See `Keys`."""
        try:
            with open(self._path, encoding="utf-8") as file:
                key = file.read().strip()
        except FileNotFoundError:
            key = ""
        return key or self._written()

    def renew(self) -> bool:
        """See `Keys`."""
        self._written()
        return True

    def spend(self) -> None:
        """See `Keys`."""
        for path in (self._path, lock_path(self._path)):
            with suppress(FileNotFoundError):
                os.unlink(path)

    def _written(self) -> str:
        key = str(uuid4())
        write_private(self._path, f"{key}\n")
        return key


def write_private(path: str, text: str) -> None:
    """Let a file of ours have this content or, after a crash, still the one before.

    Only its owner may read it (0600). Raises OSError.
    """
    folder = os.path.dirname(os.path.abspath(path))
    descriptor, new = tempfile.mkstemp(prefix=f".{os.path.basename(path)}.", dir=folder)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, path)
    except BaseException:
        os.unlink(new)
        raise
