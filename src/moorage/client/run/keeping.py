"""Keeps a granted lease: renews it in the background, notices its end, gives it back."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from moorage.client.run.acquiring import Grant
from moorage.client.run.answers import StrangeAnswerError
from moorage.client.run.calls import ANSWER_SECONDS, Leases
from moorage.client.run.terms import Term, elapsed
from moorage.client.transport import RefusedError, UnreachableError

TRIES = 12
"""Tries within a TTL while the server does not answer."""

PAUSE_SECONDS_MAX = 5.0
GONE = ("lease_ended", "lease_not_found", "token_stale", "holder_mismatch")
FAILURES = (UnreachableError, RefusedError, StrangeAnswerError)


class Keeper:
    """Renews a lease until it is closed, lost or over.

    `wake` is called whenever something has happened that `lost` and `over` tell of.
    """

    def __init__(self, leases: Leases, grant: Grant, term: Term, wake: Callable[[], None]) -> None:
        self._leases = leases
        self._lease = grant.lease
        self._term = term
        self._wake = wake
        self._closed = threading.Event()
        self._reason: str | None = None
        self._over = False
        self._trouble = "it was not renewed in time"
        self._thread = threading.Thread(target=self._renew, daemon=True)

    def start(self) -> None:
        """Begin to renew."""
        self._thread.start()

    def close(self) -> None:
        """Renew no more."""
        self._closed.set()

    @property
    def over(self) -> bool:
        """Has its hold ended it, as was wished?"""
        return self._over or (self._reason is None and self._term.over(elapsed()))

    @property
    def lost(self) -> str | None:
        """Return why it is lost; None: it is ours, or was until its hold was over."""
        if self._reason is None and not self._over and self._term.lost(elapsed()):
            self._reason = self._trouble
        return self._reason

    @property
    def seconds_left(self) -> float:
        """Return how long it is neither lost nor over, without another renewal."""
        return self._term.look_at - elapsed()

    def _renew(self) -> None:
        while not self._closed.wait(max(0.0, self._term.renew_at - elapsed())):
            while not self._renewed():
                if self.lost or self.over:
                    self._wake()
                    return
                if self._closed.wait(min(self._term.ttl / TRIES, PAUSE_SECONDS_MAX)):
                    return

    def _renewed(self) -> bool:
        """Try once; False: it is not renewed, and perhaps lost."""
        if self.lost or self.over:
            return False
        sent = elapsed()
        seconds_max = min(max(self._term.ttl / 3, 1.0), ANSWER_SECONDS)
        try:
            renewed = self._leases.renew(self._lease.id, self._lease.token, seconds_max)
        except RefusedError as refusal:
            if refusal.code in GONE:
                self._ended(str(refusal), sent)
            self._trouble = str(refusal)
            return False
        except FAILURES as failure:
            self._trouble = str(failure)
            return False
        if renewed.hold_until != self._lease.hold_until:  # somebody has changed it meanwhile
            self._term.hold_by = None if renewed.hold is None else elapsed() + renewed.hold
            self._lease = renewed
        return self._term.renewed(sent, elapsed())

    def _ended(self, told: str, sent: float) -> None:
        """The server says that it has ended: a loss, unless its hold has ended it."""
        try:
            now = self._leases.look(self._lease.id)
        except FAILURES:
            hold_by = self._term.hold_by
            self._over = hold_by is not None and sent >= hold_by
        else:
            self._over = now.cause == "hold_over"
            told = f"it has ended ({now.end})" if now.cause is not None else told
        if not self._over:
            self._reason = told


def give_back(leases: Leases, grant_id: str, seconds: float) -> Exception | None:
    """Release a lease or leave the line, trying for so many seconds at most.

    Args:
        leases: the way to the server.
        grant_id: of the lease or ticket.
        seconds: then it is left to its TTL, whatever keeps the server from answering.

    Returns:
        None if it is done, else why not.
    """
    (trouble,) = carry_through([lambda left: leases.release(grant_id, left)], seconds)
    return trouble


def carry_through(
    calls: Sequence[Callable[[float], object]], seconds: float
) -> list[Exception | None]:
    """Make each call, those before first, and again until it is answered or the time is over.

    To repeat them must be harmless. Each is given the seconds that are left.

    Returns:
        For each call None if it is done, else why not.
    """
    troubles: list[Exception | None] = [UnreachableError("no answer in time") for _ in calls]
    until = elapsed() + seconds
    pause = threading.Event()

    def work() -> None:
        left = dict(enumerate(calls))
        while left:
            for index, call in [*left.items()]:
                troubles[index] = trouble = _tried(call, max(0.1, until - elapsed()))
                if trouble is None or _final(trouble):
                    del left[index]
            if left and (pause.wait(min(0.2, max(0.0, until - elapsed()))) or elapsed() >= until):
                return

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(seconds)
    pause.set()
    return troubles


def _tried(call: Callable[[float], object], seconds: float) -> Exception | None:
    try:
        call(seconds)
    except FAILURES as failure:
        return failure
    return None


def _final(trouble: Exception) -> bool:
    """Will it be answered in the same way, however often it is tried?"""
    return isinstance(trouble, RefusedError) and trouble.status < 500 and trouble.status != 429
