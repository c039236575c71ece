"""Handle files: leases stored in a file, so that one step can acquire and another can release.

The file is JSON and readable only by its owner. An entry is written before the first try, with the
key of the attempt, so that no lease is lost if the process ends. Changes are made under a lock file
(`FILE.lock`), and written atomically.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, NamedTuple
from uuid import uuid4

from moorage.client.run.api_types import PATIENCE_SECONDS, Lease, LeaseRequest, Need
from moorage.client.run.lease.acquire import WITHDRAWN, NotGrantedError
from moorage.client.run.locks import lock_path, locked

TTL_SECONDS = 3600.0
"""The TTL of a lease in a file, which is not renewed automatically; with a hold, the hold is used.

Never longer than its pools permit.
"""


class HandleError(Exception):
    """The file is not a handle file, or cannot be used."""


class HandleEntry(NamedTuple):
    """One lease of a file.

    `key` identifies the newest attempt. `id` and the following members come from the server's
    answer: to that attempt, or, if `retrying`, to the previous one, whose lease may have ended
    since. They are None or empty before the first answer.
    """

    key: str
    wish: LeaseRequest
    id: str | None = None
    token: str | None = None
    slots: tuple[str, ...] = ()
    expires_at: str | None = None
    hold_until: str | None = None
    retrying: bool = False
    pools: tuple[str, ...] = ()
    """Those that were granted."""

    @property
    def answered(self) -> bool:
        """Whether the server has answered the newest attempt."""
        return self.id is not None and not self.retrying

    def granted(self, lease: Lease) -> HandleEntry:
        """Return the entry with the lease of the newest attempt."""
        return self.renewed(lease)._replace(id=lease.id, token=lease.token, retrying=False)

    def renewed(self, lease: Lease) -> HandleEntry:
        """Return the entry with a newer answer about its lease."""
        return self._replace(
            slots=tuple(lease.slot_names),
            pools=lease.pools if lease.state == "granted" else (),
            expires_at=lease.expires_at,
            hold_until=lease.hold_until,
        )


class Handle:
    """The leases in one file; a missing file has none. Every method raises HandleError.

    Call methods that change the file only in a `locked` block.
    """

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Prevent other processes from changing the file."""
        with ExitStack() as stack:
            try:
                stack.enter_context(locked(self.path))
            except OSError as error:
                raise HandleError(f"{lock_path(self.path)}: {error.strerror}") from None
            yield

    def entries(self) -> list[HandleEntry]:
        """Return all entries, in the order in which they were added."""
        try:
            with open(self.path, encoding="utf-8") as file:
                text = file.read()
        except FileNotFoundError:
            return []
        except UnicodeDecodeError:
            raise HandleError(f"{self.path} is not a file of leases") from None
        except OSError as error:
            raise HandleError(f"{self.path}: {error.strerror}") from None
        if not text.strip():
            return []
        try:
            return [_entry(values) for values in json.loads(text)["leases"]]
        except (AttributeError, KeyError, TypeError, ValueError):
            raise HandleError(f"{self.path} is not a file of leases") from None

    def has(self, entry: HandleEntry) -> bool:
        """Return whether an entry is still in the file: its lease was not released since."""
        return any(one.key == entry.key for one in self.entries())

    def put(self, entry: HandleEntry) -> None:
        """Add an entry."""
        self._write([*self.entries(), entry])

    def change(self, old: HandleEntry, new: HandleEntry) -> bool:
        """Replace an entry; return False if it was removed since (its lease was released)."""
        entries = self.entries()
        if all(one.key != old.key for one in entries):
            return False
        self._write([new if one.key == old.key else one for one in entries])
        return True

    def drop(self, entry: HandleEntry) -> None:
        """Remove an entry; remove the file with its last entry."""
        entries = [one for one in self.entries() if one.key != entry.key]
        if entries:
            self._write(entries)
        else:
            self.clear()

    def clear(self) -> None:
        """Remove the file."""
        for path in (self.path, lock_path(self.path)):
            with suppress(FileNotFoundError):
                os.unlink(path)

    def _write(self, entries: list[HandleEntry]) -> None:
        from moorage.client.run.private_file import write_private  # deferred: most only read

        values = {"leases": [_members(entry) for entry in entries]}
        try:
            write_private(self.path, json.dumps(values, indent=1) + "\n")
        except OSError as error:
            raise HandleError(f"{self.path}: {error.strerror}") from None


class EntryKey:
    """The key of an entry, see `Keys`; a new key is in the file before it is used."""

    fresh = False

    def __init__(self, handle: Handle, entry: HandleEntry) -> None:
        self._handle = handle
        self.entry = entry

    def current(self) -> str:
        """See `Keys`."""
        return self.entry.key

    def renew(self) -> bool:
        """See `Keys`. Raises NotGrantedError: the entry was removed, so nobody wants a lease."""
        fresh = HandleEntry(str(uuid4()), self.entry.wish)
        with self._handle.locked():
            if not self._handle.change(self.entry, fresh):
                raise NotGrantedError(WITHDRAWN, released_text(self._handle))
        self.entry = fresh
        return True

    def spend(self) -> None:
        """See `Keys`."""
        with self._handle.locked():
            self._handle.drop(self.entry)


def released_text(handle: Handle) -> str:
    """Return the message that another process has taken a lease out of its file."""
    return f"another process has released {handle.path}"


def _entry(values: Any) -> HandleEntry:
    wish = values["wish"]
    return HandleEntry(
        key=str(values["key"]),
        wish=LeaseRequest(
            needs=tuple((str(pool), int(units)) for pool, units in wish["needs"]),
            ttl=wish["ttl"],
            hold=wish["hold"],
            priority=int(wish["priority"]),
            labels=_pairs(wish["labels"]),
            about=_pairs(wish.get("about", ())),  # missing in older files
            patience=float(wish.get("patience", PATIENCE_SECONDS)),  # missing in older files
            usual_ttl=wish.get("usual_ttl"),
            slot_labels=tuple(
                (str(pool), tuple((str(name), str(value)) for name, value in labels))
                for pool, labels in wish.get("slot_labels", ())  # missing in older files
            ),
            group=str(wish.get("group", "")),  # missing in older files
            cancel_running=bool(wish.get("cancel_running")),
            preemptible=wish.get("preemptible"),  # missing in older files
            any_of=tuple(
                tuple(Need(str(pool), int(units), _pairs(labels)) for pool, units, labels in needs)
                for needs in wish.get("any_of", ())  # missing in older files
            ),
            in_order=bool(wish.get("in_order")),
        ),
        id=values["id"],
        token=values["token"],
        slots=tuple(values["slots"]),
        expires_at=values["expires_at"],
        hold_until=values["hold_until"],
        retrying=bool(values.get("retrying")),
        pools=tuple(map(str, values.get("pools", ()))),
    )


def _pairs(values: Any) -> tuple[tuple[str, str], ...]:
    return tuple((str(name), str(value)) for name, value in values)


def _members(entry: HandleEntry) -> dict[str, Any]:
    return {**entry._asdict(), "wish": entry.wish._asdict()}
