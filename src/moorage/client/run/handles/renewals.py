"""Renews the leases in a handle file, once or repeatedly."""

from __future__ import annotations

from moorage.client.run.api_types import Lease
from moorage.client.run.handles.file import TTL_SECONDS, Handle, HandleEntry
from moorage.client.run.lease.api import ANSWER_SECONDS, Leases
from moorage.client.run.lease.lease_clock import RENEWALS
from moorage.client.run.lease.renewer import FAILURES, GONE
from moorage.client.run.progress import Progress
from moorage.client.transport import RefusedError

TRY_AGAIN_SECONDS = 10.0
"""The pause after a renewal without an answer."""


class Renewals:
    """Renews the leases in a file repeatedly."""

    def __init__(self, handle: Handle, leases: Leases, notices: Progress) -> None:
        self._handle = handle
        self._leases = leases
        self._notices = notices
        self.gone: set[str] = set()
        """Leases that have ended although they are still in the file."""
        self._stopping: set[str] = set()
        """Leases whose holders are asked to stop, which was reported."""

    def round(self, patient: bool) -> float | None:
        """Renew each lease once; return the seconds to the next round, None if none is left.

        Raises the first error that is not the end of a lease, unless `patient`.
        """
        pauses = []
        for entry in self._handle.entries():
            if entry.id is None or entry.id in self.gone:
                continue
            ttl = entry.wish.ttl
            try:
                lease = self._leases.renew(entry.id, entry.token, ANSWER_SECONDS)
            except FAILURES as failure:
                if patient and self._released(entry):
                    continue
                self._notices.say(f"lease {entry.id}: {failure}")
                if isinstance(failure, RefusedError) and failure.code in GONE:
                    self.gone.add(entry.id)
                    continue
                if not patient:
                    raise
                pauses.append(min(TRY_AGAIN_SECONDS, ttl or TTL_SECONDS))
            else:
                refresh(self._handle, entry, lease)
                if lease.stop_until is not None and entry.id not in self._stopping:
                    self._stopping.add(entry.id)
                    self._notices.say(f"lease {entry.id}: {lease.stop_text}")
                pauses.append((lease.ttl or TTL_SECONDS) / RENEWALS)
        return min(pauses, default=None)

    def _released(self, entry: HandleEntry) -> bool:
        """Return whether another process has released it; the file may not show this yet."""
        if all(one.key != entry.key for one in self._handle.entries()):
            return True
        try:
            return self._leases.look(str(entry.id)).cause == "released"
        except FAILURES:
            return False


def refresh(handle: Handle, entry: HandleEntry, lease: Lease) -> None:
    """Store a renewed lease, unless its entry was removed since."""
    with handle.locked():
        handle.change(entry, entry.renewed(lease))
