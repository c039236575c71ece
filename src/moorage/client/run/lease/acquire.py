"""Acquires a lease: sends the request, waits in line, retries after failures, gives up in time."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from moorage.client.run.api_types import Lease, LeaseRequest, StrangeAnswerError
from moorage.client.run.clock import elapsed
from moorage.client.run.durations import spoken
from moorage.client.run.lease.api import Leases
from moorage.client.run.lease.idempotency_keys import IdempotencyKeys
from moorage.client.run.lease.lease_clock import LeaseTerm
from moorage.client.transport import MoorageError, RefusedError, UnreachableError

POLL_SECONDS_MAX = 20.0
"""The longest poll: many proxies close a silent connection after 30 seconds."""

PAUSE_SECONDS = 0.25
"""The first pause before a retry; each further one is twice as long."""

PAUSE_SECONDS_MAX = 5.0
RETRY_SECONDS_MAX = 30.0
"""The longest `Retry-After` that is obeyed; a place in line is kept at least this long."""

QUEUE_FULL_STATUS = 429
TROUBLE_STATUS = 500
"""From this status on the server itself has failed, and a retry may succeed."""

WITHDRAWN, REVOKED, ABANDONED = "withdrawn", "revoked", "abandoned"
SUPERSEDED = "superseded"
BY_OWNER = frozenset(("withdrawn", "released", "retried"))
"""Causes of an end that the owner wanted: clients that wait for this lease must not ask again."""

OVER = ("lease_ended", "lease_not_found", "token_stale")
"""Codes of answers about a grant that is over; its ticket may wait, or be granted, again."""

T = TypeVar("T")


class NotGrantedError(MoorageError):
    """No lease was granted.

    `why` is refused, pool_unknown, nested, unreachable, timed_out, withdrawn,
    revoked, superseded or abandoned.
    """

    def __init__(self, why: str, message: str) -> None:
        super().__init__(message)
        self.why = why


class Grant(NamedTuple):
    """A lease, and how long it is valid; None: until it is released."""

    lease: Lease
    term: LeaseTerm | None


class Patience(NamedTuple):
    """How long to keep trying, in seconds."""

    wait: float
    unreachable_after: float
    poll: float = POLL_SECONDS_MAX
    jitter: float = 0.0


class Acquiring:
    """One attempt. `get` runs in a thread; everything else is used from other threads.

    `lease` is the newest answer, `trouble` the present reason for getting none. `uncertain`: the
    server may have a lease or a ticket of this attempt. `notes` are messages for people; remove
    them when they are shown.
    """

    def __init__(
        self,
        leases: Leases,
        wish: LeaseRequest,
        keys: IdempotencyKeys,
        patience: Patience,
        first: Callable[[], Lease] | None = None,
        check: Callable[[], None] | None = None,
        waits: Callable[[Lease], bool] | None = None,
    ) -> None:
        """Prepare the request.

        Args:
            leases: calls the server.
            wish: what to request.
            keys: of this attempt.
            patience: how long to keep trying.
            first: sends the first request, if that is not the plain request with the key.
            check: called before the first request, with the same retries; may raise
                NotGrantedError.
            waits: called with the ticket before each wait in line until it returns that it is
                done; may raise NotGrantedError.
        """
        self.wish = wish
        self.began = elapsed()
        self.lease: Lease | None = None
        self.trouble: str | None = None
        self.uncertain = False
        self.notes: list[str] = []
        self.leases = leases
        self._keys = keys
        self._patience = patience
        self._first = first
        self._check = check
        self._waits = waits
        self._stopped = threading.Event()
        self._sent = self._reported_at = self.began
        self._lost = False
        """Whether an answer to the current request was lost."""

    def stop(self) -> None:
        """Give up at the next opportunity."""
        self._stopped.set()

    def poll_within(self, seconds: float) -> None:
        """Poll at least this often."""
        self._patience = self._patience._replace(poll=seconds)

    @property
    def age(self) -> float:
        """Seconds since `lease` was received."""
        return elapsed() - self._reported_at

    @property
    def waited(self) -> float:
        """Seconds since the attempt began."""
        return elapsed() - self.began

    def get(self) -> Grant:
        """Return the lease when it is granted; a second call returns it again if it is still valid.

        Raises NotGrantedError, OSError (from the key's file).
        """
        lease = self._first_answer() if self.lease is None else self.lease
        while True:
            if lease.state == "granted":
                grant = self._confirmed(lease)
                if grant is not None:
                    return grant
                lease = self._look(lease, 0.0)
            elif lease.state == "waiting":
                if self._waits is not None and self._waits(lease):
                    self._waits = None
                lease = self._look(lease, self._left(lease))
            else:
                check_end(lease)
                lease = self._again(lease)

    def _first_answer(self) -> Lease:
        if self._patience.jitter:
            self._stopped.wait(random.uniform(0, self._patience.jitter))
        if self._check is not None:
            self._persist(self._check)
        lease = self._attempt(self._ask if self._first is None else self._first)
        if lease.state == "ended":
            if self._keys.fresh or lease.cause == SUPERSEDED:
                check_end(lease)
            # Otherwise it is the lease of an earlier attempt with the same key.
            lease = self._again(lease)
        return lease

    def _look(self, lease: Lease, wait: float) -> Lease:
        try:
            return self._attempt(lambda: self.leases.look(lease.id, wait))
        except _EndedError as ended:
            self.uncertain = False
            return lease._replace(state="ended", cause="forgotten", detail=str(ended))

    def _again(self, ended: Lease) -> Lease:
        """Send a new request, because the ticket or lease has ended. Raises NotGrantedError."""
        if self._stopped.is_set():
            raise NotGrantedError("withdrawn", "withdrawn")
        if not self._keys.renew():
            raise NotGrantedError(
                "refused",
                f"the lease of this key has ended, use a new key: {ended.end}",
            )
        if self.wish.group:
            self._check_newest(ended)
        self.notes.append(self._anew(ended))
        self.lease = None
        return self._attempt(self._ask)

    def _check_newest(self, ended: Lease) -> None:
        """Raise NotGrantedError if a later request of the group came while nobody heard of this.

        The server decides by the order of arrival: asking again would end the newer ticket.
        """
        newer: list[Lease] = []

        def look() -> None:
            newer[:] = self.leases.newer_of(self.wish.group, ended)

        self._persist(look)
        if newer:
            raise NotGrantedError(SUPERSEDED, superseded_text(ended.id, newer[-1].id))

    def _anew(self, ended: Lease) -> str:
        if ended.cause != "unheard":
            return f"lease {ended.id} has ended, asking again: {ended.end}"
        kept = spoken(self.wish.patience)
        return (
            f"the place in line is lost, because the server heard nothing from us for {kept}"
            " (--patience); asking again, at the end of the line"
        )

    def _ask(self) -> Lease:
        return self.leases.ask(self.wish, self._keys.current())

    def _left(self, lease: Lease) -> float:
        left = self._patience.wait - self.waited
        if left <= 0:
            place = "" if lease.waiting is None else f": {lease.waiting.reason}"
            raise NotGrantedError("timed_out", f"not granted in time{place}")
        return min(left, self._patience.poll)

    def _confirmed(self, lease: Lease) -> Grant | None:
        """Return the grant with a reliable term; None if the lease has ended.

        It is renewed first: the server ends a grant of which no renewal shows within seconds that
        its client is there, and the first answer with it may have been lost or read late.
        """
        received = elapsed()
        hold_by = None if lease.lasts is None else received + lease.lasts
        try:
            renewed = self._attempt(
                lambda: self.leases.renew(lease.id, lease.token, self._patience.poll)
            )
        except _EndedError:
            return None
        if renewed.ttl is None:
            return Grant(renewed, None)
        return Grant(renewed, LeaseTerm(renewed.ttl, self._sent, hold_by))

    def _attempt(self, call: Callable[[], Lease]) -> Lease:
        """Call until there is an answer, and record it. Raises NotGrantedError, _EndedError."""
        before, self._lost = self.uncertain, False

        def asked() -> Lease:
            self.uncertain = True
            try:
                return call()
            except RefusedError as refusal:
                if refusal.status < TROUBLE_STATUS and not self._lost:
                    self.uncertain = before  # a refused request has no effect
                raise

        try:
            lease = self._persist(asked)
        except StrangeAnswerError as strange:
            raise NotGrantedError("refused", str(strange)) from None
        self.lease = lease
        self.uncertain = lease.state != "ended"
        self._reported_at = elapsed()
        return lease

    def _persist(self, call: Callable[[], T]) -> T:
        """Call until there is an answer. Raises NotGrantedError, _EndedError."""
        pause, since = PAUSE_SECONDS, elapsed()
        while True:
            if self._stopped.is_set():
                raise NotGrantedError("withdrawn", "withdrawn")
            self._sent = elapsed()
            try:
                answer = call()
                self.trouble = None
                return answer
            except UnreachableError as lost:
                self._lost = True
                self.trouble = str(lost)
                self._bear(since)
            except RefusedError as refusal:
                self._lost = self._lost or refusal.status >= TROUBLE_STATUS
                pause = self._judge(refusal, since) or pause
            self._rest(pause)
            pause = min(2 * pause, PAUSE_SECONDS_MAX)

    def _judge(self, refusal: RefusedError, since: float) -> float | None:
        """Return the pause that the refusal demands, if any. Raises if a retry cannot help."""
        if refusal.code in OVER and self.lease is not None:
            raise _EndedError(str(refusal))
        if refusal.status == QUEUE_FULL_STATUS:
            self.trouble = str(refusal)
        elif refusal.status >= TROUBLE_STATUS or (refusal.token_may_change and self.lease):
            # A ticket does not end because the file of the token is not written yet.
            self.trouble = str(refusal)
            self._bear(since)
        else:
            why = "pool_unknown" if refusal.code == "pool_unknown" else "refused"
            raise NotGrantedError(why, str(refusal)) from refusal
        return None if refusal.retry_after is None else min(refusal.retry_after, RETRY_SECONDS_MAX)

    def _bear(self, since: float) -> None:
        if elapsed() - since >= min(self._patience.unreachable_after, self._patience.wait):
            raise NotGrantedError("unreachable", str(self.trouble))

    def _rest(self, seconds: float) -> None:
        left = self._patience.wait - self.waited
        if left <= 0:
            raise NotGrantedError("timed_out", f"not granted in time: {self.trouble}")
        self._stopped.wait(min(seconds, left))


def check_end(lease: Lease) -> None:
    """Raise NotGrantedError if somebody has ended a ticket, or its lease, on purpose."""
    if lease.cause == "revoked":
        raise NotGrantedError(REVOKED, f"removed from the line: {lease.end}")
    if lease.cause == SUPERSEDED:
        raise NotGrantedError(SUPERSEDED, superseded_text(lease.id, lease.superseded_by))
    if lease.cause == "handed_over":
        raise NotGrantedError(WITHDRAWN, f"lease {lease.id} was handed over {lease.detail}")
    if lease.cause in BY_OWNER:
        raise NotGrantedError(
            WITHDRAWN, f"ticket {lease.id} was withdrawn {lease.detail or 'by its owner'}"
        )


def superseded_text(lease_id: str, newer: str | None) -> str:
    """Return the message that a newer request of its group waits, or runs, instead."""
    return f"ticket {lease_id} was superseded by the newer {newer} of its group"


class _EndedError(Exception):
    """The lease has ended, is not the one that was granted, or does not exist any more."""
