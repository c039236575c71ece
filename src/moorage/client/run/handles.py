"""Handle files: leases kept in a file, so that one step acquires and another releases.

The file is JSON and readable by its owner only. An entry is written before the first try, with the
key of the attempt, so that nothing is lost whenever the process ends. Changes are made under a lock
beside the file (`FILE.lock`), and each is written as a whole or not at all.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple
from uuid import uuid4

from moorage.client.run.answers import Lease, Wish
from moorage.client.run.keys import write_private

TTL_SECONDS = 3600.0
"""Of a lease in a file, which nobody renews by itself; with a hold it is about as long as that."""


class HandleError(Exception):
    """The file is none of ours, or cannot be used."""


class Entry(NamedTuple):
    """One lease of a file. `id` is None until the server has answered."""

    key: str
    wish: Wish
    id: str | None = None
    token: str | None = None
    slots: tuple[str, ...] = ()
    expires_at: str | None = None
    hold_until: str | None = None

    def granted(self, lease: Lease) -> Entry:
        """Return it with what was granted."""
        return self._replace(
            id=lease.id,
            token=lease.token,
            slots=tuple(lease.slot_names),
            expires_at=lease.expires_at,
            hold_until=lease.hold_until,
        )


class Handle:
    """The leases in one file; a file that is not there has none. Every method raises HandleError.

    Of those that change it each stands in a `locked` block.
    """

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep every other process from changing the file."""
        try:
            descriptor = self._lock()
        except OSError as error:
            raise HandleError(f"{self._lock_path}: {error.strerror}") from None
        try:
            yield
        finally:
            os.close(descriptor)

    @property
    def _lock_path(self) -> str:
        return f"{self.path}.lock"

    def _lock(self) -> int:
        """Return the locked file; whoever drops the last lease removes it while it is locked."""
        while True:
            descriptor = os.open(self._lock_path, os.O_RDWR | os.O_CREAT, 0o600)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), os.stat(self._lock_path)):
                    return descriptor
            os.close(descriptor)

    def entries(self) -> list[Entry]:
        """Return all leases in it, in the order of their acquisition."""
        try:
            with open(self.path, encoding="utf-8") as file:
                text = file.read()
        except FileNotFoundError:
            return []
        except UnicodeDecodeError:
            raise HandleError(f"{self.path} is no handle of leases") from None
        except OSError as error:
            raise HandleError(f"{self.path}: {error.strerror}") from None
        if not text.strip():
            return []
        try:
            return [_entry(told) for told in json.loads(text)["leases"]]
        except (AttributeError, KeyError, TypeError, ValueError):
            raise HandleError(f"{self.path} is no handle of leases") from None

    def put(self, entry: Entry) -> None:
        """Keep one more lease."""
        self._write([*self.entries(), entry])

    def change(self, old: Entry, new: Entry) -> bool:
        """Keep the newer state of a lease; False: somebody has released it meanwhile."""
        entries = self.entries()
        if all(one.key != old.key for one in entries):
            return False
        self._write([new if one.key == old.key else one for one in entries])
        return True

    def drop(self, entry: Entry) -> None:
        """Forget a lease; without any the file goes, too."""
        entries = [one for one in self.entries() if one.key != entry.key]
        if entries:
            self._write(entries)
        else:
            self.clear()

    def clear(self) -> None:
        """Remove the file."""
        for path in (self.path, self._lock_path):
            with suppress(FileNotFoundError):
                os.unlink(path)

    def _write(self, entries: list[Entry]) -> None:
        told = {"leases": [_told(entry) for entry in entries]}
        try:
            write_private(self.path, json.dumps(told, indent=1) + "\n")
        except OSError as error:
            raise HandleError(f"{self.path}: {error.strerror}") from None


class EntryKey:
    """The key of an entry, see `keys.Keys`; a new one is in the file before it is used."""

    def __init__(self, handle: Handle, entry: Entry) -> None:
        self._handle = handle
        self.entry = entry

    def current(self) -> str:
        """See `Keys`."""
        return self.entry.key

    def renew(self) -> bool:
        """See `Keys`."""
        fresh = Entry(str(uuid4()), self.entry.wish)
        with self._handle.locked():
            if not self._handle.change(self.entry, fresh):
                return False
        self.entry = fresh
        return True

    def spend(self) -> None:
        """See `Keys`."""
        with self._handle.locked():
            self._handle.drop(self.entry)


def _entry(told: Any) -> Entry:
    wish = told["wish"]
    return Entry(
        key=str(told["key"]),
        wish=Wish(
            needs=tuple((str(pool), int(units)) for pool, units in wish["needs"]),
            ttl=wish["ttl"],
            hold=wish["hold"],
            priority=int(wish["priority"]),
            labels=tuple((str(name), str(value)) for name, value in wish["labels"]),
        ),
        id=told["id"],
        token=told["token"],
        slots=tuple(told["slots"]),
        expires_at=told["expires_at"],
        hold_until=told["hold_until"],
    )


def _told(entry: Entry) -> dict[str, Any]:
    return {**entry._asdict(), "wish": entry.wish._asdict()}
