"""Logs every grant and every end of a lease or ticket that this process commits.

Under load, at most `LINES_MAX` lines a second are written, and the others are counted: a line takes
more time than a grant.
"""

import asyncio
import logging
from collections import Counter

from moorage.core.admission.facts import Changes
from moorage.core.admission.model import Lease
from moorage.core.clock import SECOND, Instant
from moorage.core.service_time import When
from moorage.wire.labels import holder_of

LINES_MAX = 100
"""Lines in `WINDOW_SECONDS`."""

WINDOW_SECONDS = 1.0

log = logging.getLogger("moorage.leases")


class LeaseLog:
    """Writes the lines. Only committed changes may be noted."""

    def __init__(self) -> None:
        self._left = LINES_MAX
        self._skipped: Counter[str] = Counter()
        """Lines of this window that were not written, by what they would have reported."""
        self._window: asyncio.TimerHandle | None = None

    def note(self, changes: Changes, when: When) -> None:
        """Log the grants and ends of a commit."""
        if not changes.leases or not log.isEnabledFor(logging.INFO):
            return
        now = when.moment.at
        for lease in changes.leases.values():
            if lease is None:
                continue
            if lease.ended_at == now:  # not one that had ended before
                self._write("ends", lease, now)
            elif lease.granted_at == now and lease.state == "granted":
                self._write("grants", lease, now)

    def close(self) -> None:
        """Write what is left to report."""
        if self._window is not None:
            self._window.cancel()
            self._reopen()

    def _write(self, what: str, lease: Lease, now: Instant) -> None:
        if self._window is None:
            loop = asyncio.get_running_loop()
            self._window = loop.call_later(WINDOW_SECONDS, self._reopen)
        if self._left <= 0:
            self._skipped[what] += 1
            return
        self._left -= 1
        log.info("%s", _text(lease, now))

    def _reopen(self) -> None:
        """Begin another window; report what the last one has left out."""
        skipped, self._skipped = self._skipped, Counter()
        self._left, self._window = LINES_MAX, None
        if skipped:
            counts = " and ".join(f"{count} {what}" for what, count in sorted(skipped.items()))
            log.info("%s more within %g s, which are not listed", counts, WINDOW_SECONDS)


def _text(lease: Lease, now: Instant) -> str:
    needs = ",".join(f"{need.pool}={need.units}" for need in lease.needs)
    granted = lease.granted_at
    text = f"{_event(lease)} lease={lease.id} needs={needs}"
    text += f" holder={holder_of(lease.owner, lease.labels)!r}"
    text += f" waited={((now if granted is None else granted) - lease.asked_at) / SECOND:.3f}s"
    if lease.state != "ended":
        return text + (" forced" if lease.forced else "")
    if granted is not None:
        text += f" held={(now - granted) / SECOND:.3f}s"
    return f"{text} cause={lease.cause}" + (f" detail={lease.detail!r}" if lease.detail else "")


def _event(lease: Lease) -> str:
    if lease.state == "granted":
        return "granted"
    return "revoked" if lease.cause == "revoked" else "ended"
