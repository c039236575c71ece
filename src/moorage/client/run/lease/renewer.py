"""Maintains a granted lease: renews it in the background, detects its end, gives it back."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence

from moorage.client.run.api_types import Lease, StrangeAnswerError
from moorage.client.run.clock import elapsed, second_of
from moorage.client.run.lease.acquire import POLL_SECONDS_MAX, Grant
from moorage.client.run.lease.api import ANSWER_SECONDS, Leases
from moorage.client.run.lease.lease_clock import RENEWALS, LeaseTerm
from moorage.client.transport import RefusedError, UnreachableError

TRIES = 12
"""Tries per TTL while the server does not answer."""

PAUSE_SECONDS_MAX = 5.0
LOOK_SECONDS = 5.0
"""The longest time between two looks at the clock: waits do not count time in suspension."""

ANSWER_SECONDS_MIN = 0.1
"""How long to wait for an answer at least: 0 would mean not to wait at all."""

HASTY_MAX = 3
"""After this many premature answers in a row, the server is taken not to support waiting."""

GONE = ("lease_ended", "lease_not_found", "token_stale", "holder_mismatch")
FAILURES = (UnreachableError, RefusedError, StrangeAnswerError)


class Renewer:
    """Renews a lease until it is closed, lost or over, and waits for the server to report its end.

    Calls `wake` whenever `lost` or `over` changes. A `patient` keeper considers the lease lost
    only if the server says so, never because the server does not answer. Otherwise the keeper uses
    its own clock, and considers the lease lost before the server may end it. `stoppable`: the
    server may ask the holder to stop.
    """

    def __init__(
        self,
        leases: Leases,
        grant: Grant,
        term: LeaseTerm,
        wake: Callable[[], None],
        patient: bool,
        stoppable: bool = False,
    ) -> None:
        self._leases = leases
        self._lease = grant.lease
        self._stoppable = stoppable
        self._term = term
        self._wake = wake
        self._patient = patient
        self._closed = threading.Event()
        self._tried = threading.Event()
        self._tried_at = 0.0
        self._ending = threading.Lock()
        self._reason: str | None = None
        self._over = False
        self._asked_to_stop: str | None = None
        self.preempted = False
        """Whether it is asked to stop for a ticket that goes before it, not for a newer one."""
        self._failing_since: float | None = None
        self.trouble = "it was not renewed in time"
        """The last reason why a renewal failed."""
        self.kill_by = float("inf")
        """When the command must be killed, if the lease is lost by the client's clock."""
        self.threads = [
            threading.Thread(target=work, daemon=True) for work in (self._renew, self._listen)
        ]

    def start(self) -> None:
        """Start to renew, and to wait for the end."""
        for thread in self.threads:
            thread.start()

    def close(self) -> None:
        """Stop renewing."""
        self._closed.set()

    @property
    def over(self) -> bool:
        """Whether it has ended by its hold, as requested."""
        return self._over or (self._reason is None and self._term.over(elapsed()))

    @property
    def lost(self) -> str | None:
        """Why it is lost; None if it is valid, or was until its hold was over."""
        if not self._patient and self._reason is None and self._term.lost(elapsed()):
            self.kill_by = self._term.kill_by
            self._conclude(self.trouble)
        return self._reason

    @property
    def asked_to_stop(self) -> str | None:
        """Why its holder is to stop and to release it, while it is valid; None: it is not."""
        return self._asked_to_stop

    @property
    def doubtful(self) -> bool:
        """Whether it was not renewed in time, so that the server may have ended it."""
        return self._reason is None and not self._over and self._term.lost(elapsed())

    @property
    def failing_seconds(self) -> float:
        """How long renewals have failed, in seconds."""
        since = self._failing_since
        return 0.0 if since is None else elapsed() - since

    @property
    def seconds_left(self) -> float:
        """How long it is neither lost nor over without another renewal."""
        return self._term.seconds_to_look(elapsed())

    def settle(self, seconds: float) -> None:
        """Wait until the state of a lease that was not renewed in time is known.

        Waits at most this many seconds, and not longer than one more try takes.
        """
        began = elapsed()
        while self.doubtful and not self.lost and self._tried_at < began:
            left = began + seconds - elapsed()
            if left <= 0:
                return
            self._tried.wait(left)
            self._tried.clear()

    def _renew(self) -> None:
        while not self._closed.is_set():
            wait = self._term.renew_at - elapsed()
            if wait > 0:
                self._closed.wait(min(wait, LOOK_SECONDS))
            elif not self._renewed():
                if self.lost or self.over:
                    self._wake()
                    return
                pause = min(self._term.ttl / TRIES, PAUSE_SECONDS_MAX)
                self._closed.wait(min(pause, self.seconds_left))

    def _renewed(self) -> bool:
        """Try once; return False if it was not renewed, and may be lost."""
        if self.lost or self.over:
            return False
        sent = elapsed()
        try:
            renewed = self._leases.renew(
                self._lease.id, self._lease.token, self._answer_seconds(sent)
            )
        except RefusedError as refusal:
            if refusal.code in GONE:
                self._ended(str(refusal), sent)
            return self._failed(refusal, sent)
        except FAILURES as failure:
            return self._failed(failure, sent)
        if renewed.hold_until != self._lease.hold_until:  # changed by another process
            self._term.hold_by = None if renewed.lasts is None else elapsed() + renewed.lasts
            self._lease = renewed
        self._note_stop(renewed)
        in_time = self._term.renewed(sent, elapsed(), late=self._patient)
        self._failing_since = None
        self._note_try(sent)
        return in_time

    def _answer_seconds(self, now: float) -> float:
        """Return how long to wait for a renewal that is sent now.

        Unless this is patient, not longer than the lease is valid: later answers do not count, and
        `wake` must come before its units can be granted to another.
        """
        seconds = min(max(self._term.ttl / RENEWALS, 1.0), ANSWER_SECONDS)
        left = self._term.deadline - now
        return (
            seconds if self._patient or left <= 0 else max(min(seconds, left), ANSWER_SECONDS_MIN)
        )

    def _failed(self, failure: Exception, sent: float) -> bool:
        self.trouble = str(failure)
        if self._failing_since is None:
            self._failing_since = sent
        self._note_try(sent)
        return False

    def _note_try(self, sent: float) -> None:
        self._tried_at = sent
        self._tried.set()

    def _listen(self) -> None:
        """Wait for the server to report the end at once; renewals would notice it later.

        Gives up if the server does not support this.
        """
        hasty = 0
        while not self._closed.is_set() and not (self.lost or self.over):
            sent = elapsed()
            try:
                lease = self._leases.await_end(
                    self._lease.id, POLL_SECONDS_MAX, or_stop=self._may_be_stopped
                )
            except RefusedError as refusal:
                if refusal.code in ("lease_ended", "lease_not_found"):
                    self._ended(str(refusal), sent)
                    self._wake()
                    return
                if not refusal.is_temporary:
                    return
            except FAILURES:
                pass  # the renewals report it
            else:
                if lease.state == "ended":
                    self._ended_as(lease)
                    self._wake()
                    return
                if self._note_stop(lease):
                    continue
                hasty = hasty + 1 if elapsed() - sent < POLL_SECONDS_MAX / 2 else 0
                if hasty >= HASTY_MAX:
                    return
                if not hasty:
                    continue
            # Random, because all holders may lose their connections at the same moment.
            self._closed.wait(random.uniform(0.5, 1.0) * PAUSE_SECONDS_MAX)

    @property
    def _may_be_stopped(self) -> bool:
        """Whether the server may ask the holder to stop, and has not done so yet."""
        return self._stoppable and self._asked_to_stop is None

    def _note_stop(self, lease: Lease) -> bool:
        """Note that the holder is asked to stop; return whether that is new."""
        if lease.stop_until is None or self._asked_to_stop is not None:
            return False
        self._asked_to_stop = lease.stop_text
        self.preempted = lease.preempted_by is not None
        self._wake()
        return True

    def _ended(self, reason: str, sent: float) -> None:
        """Handle the server's answer that it has ended: a loss, unless it ended by its hold."""
        try:
            self._ended_as(self._leases.look(self._lease.id), reason)
        except FAILURES:
            hold_by = self._term.hold_by
            self._conclude(reason, over=hold_by is not None and sent >= hold_by)

    def _ended_as(self, lease: Lease, reason: str = "") -> None:
        text = reason if lease.cause is None else f"it has ended ({lease.end})"
        self._conclude(text, over=lease.cause == "hold_over")

    def _conclude(self, reason: str, over: bool = False) -> None:
        """Record how it has ended; only the first call counts."""
        with self._ending:
            if self._reason is None and not self._over:
                self._over = over
                self._reason = None if over else reason


def give_back(
    leases: Leases, lease: Lease, seconds: float, *, gave_up: bool = False
) -> Exception | None:
    """Release a lease or withdraw a ticket; try for at most this many seconds.

    Args:
        leases: calls the server.
        lease: or ticket.
        seconds: after that, it ends by its TTL.
        gave_up: the longest wait for a ticket is over.

    Returns:
        None if it succeeded, otherwise the error.
    """
    if gave_up and lease.state == "waiting":
        (trouble,) = carry_through([lambda left: leases.give_up(lease.id, left)], seconds)
    else:
        release = [lambda left: leases.release(lease.id, lease.token, left)]
        (trouble,) = carry_through(release, seconds)
    return trouble


def keep_or_release(
    leases: Leases, lease: Lease, seconds: float, reason: str, seconds_max: float
) -> str:
    """Keep a lease for inspection; release it if the server refuses that. Returns what was done.

    Safe to repeat. Raises as the calls of `Leases`, but not for a refusal.
    """
    try:
        kept = leases.keep(lease.id, lease.token, seconds, reason, seconds_max)
    except RefusedError as refusal:
        if refusal.is_temporary:
            raise
        leases.release(lease.id, lease.token, seconds_max)
        return f"lease {lease.id} is released, because it cannot be kept: {refusal}"
    until = "it is released" if kept.hold_until is None else second_of(kept.hold_until)
    return (
        f"lease {lease.id} is kept for inspection until {until}; to end it earlier:"
        f" moorage lease release {lease.id}"
    )


def carry_through(
    calls: Sequence[Callable[[float], object]], seconds: float
) -> list[Exception | None]:
    """Make each call in order, and repeat it until it is answered or the time is over.

    The calls must be safe to repeat. Each gets the remaining seconds as its argument.

    Returns:
        For each call None if it succeeded, otherwise the error.
    """
    troubles: list[Exception | None] = [
        UnreachableError("the server did not answer in time") for _ in calls
    ]
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
    """Return whether a retry would give the same answer."""
    return isinstance(trouble, RefusedError) and not trouble.is_temporary
