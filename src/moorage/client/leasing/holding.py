"""A lease for a block of code: acquired at its start, renewed meanwhile, released at its end."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType

from moorage.client.leasing.around import enter, leases_here, leave
from moorage.client.leasing.at_exit import HELD
from moorage.client.leasing.errors import (
    AskedToStopError,
    LeaseLostError,
    NotInTimeError,
    RevokedError,
    SupersededError,
    WithdrawnError,
)
from moorage.client.leasing.options import RELEASE_SECONDS, HoldingOptions
from moorage.client.run.api_types import CAUSE_LENGTH_MAX, Lease
from moorage.client.run.clock import elapsed
from moorage.client.run.lease.acquire import Acquiring, Grant, NotGrantedError
from moorage.client.run.lease.api import Leases
from moorage.client.run.lease.idempotency_keys import IdempotencyKeys, OwnKey, StandingKey
from moorage.client.run.lease.nesting import (
    NESTED,
    SHORT_SECONDS,
    OwnLeases,
    check_own,
    leases_around,
)
from moorage.client.run.lease.renewer import FAILURES, Renewer, carry_through
from moorage.client.transport import MoorageError, RefusedError, UnreachableError

LOG = logging.getLogger("moorage.client")

ERRORS: dict[str, Callable[[str], MoorageError]] = {
    "timed_out": NotInTimeError,
    "unreachable": UnreachableError,
    "withdrawn": WithdrawnError,
    "revoked": RevokedError,
    "superseded": SupersededError,
}
"""The errors for callers by `NotGrantedError.why`."""

FORKED = "this is a forked process; only process {pid}, which acquired the lease, can tell"


class Holding:
    """One lease, from its request to its release; made by `Client.lease`, usable once.

    While it is held, two threads renew it and wait for the server to report its end. A forked
    child neither renews nor releases it.
    """

    def __init__(self, leases: Leases, options: HoldingOptions) -> None:
        self._leases = leases
        self._options = options
        # Its key and its process are those of `acquire`: it may be made before a fork.
        self._keys: IdempotencyKeys = OwnKey()
        self._pid: int | None = None
        self._state = threading.Lock()
        self._acquiring: Acquiring | None = None
        self._abandoned = False
        self._granted: Lease | None = None
        self._keeper: Renewer | None = None
        self._held = False
        self._notified = False
        self._outcome: tuple[str, str, str] | None = None
        self._reason: str | None = None
        """Why it was lost, once it is released."""
        self.own: OwnLeases | None = None
        """The leases around it and beside it; None: as the caller of `acquire` has them."""

    @property
    def id(self) -> str:
        """The lease's id."""
        return self._lease.id

    @property
    def token(self) -> str:
        """The fencing token: later leases of a pool have higher ones."""
        return self._lease.token or ""

    @property
    def pools(self) -> tuple[str, ...]:
        """The pools that it has units of; of several alternatives those of the granted one."""
        return self._lease.pools

    @property
    def slots(self) -> dict[str, list[str]]:
        """The names of its slots, by pool."""
        return self._lease.slots

    @property
    def lost(self) -> str | None:
        """Why it is lost; None while it is valid, after its hold and after its release."""
        if self._forked:
            return FORKED.format(pid=self._pid)
        if self._keeper is None or not self._held:
            return self._reason
        return self._keeper.lost

    @property
    def over(self) -> bool:
        """Whether its hold has ended it, as requested."""
        return self._keeper is not None and not self._forked and self._keeper.over

    @property
    def asked_to_stop(self) -> str | None:
        """Why its holder is to stop and to release it, although it is valid; None: it is not."""
        held = self._keeper is not None and self._held and not self._forked
        return self._keeper.asked_to_stop if held and self._keeper is not None else None

    def check(self) -> None:
        """Raise LeaseLostError if it is lost, AskedToStopError if its holder is to stop."""
        if (reason := self.lost) is not None:
            raise LeaseLostError(self.id, reason)
        if (reason := self.asked_to_stop) is not None:
            raise AskedToStopError(self.id, reason)

    def report(self, result: str, detail: str = "", cause: str = "") -> None:
        """Set the outcome (ok, failed or throttled) that the server gets with the release.

        `cause`: a short text, the same for failures that belong together.
        """
        self._outcome = (result, detail, cause)

    def acquire(self) -> Holding:
        """Wait for the lease, fairly, and begin to renew it; `release` must follow.

        Raises:
            NotInTimeError: it was not granted within `wait`; with a key, its place is kept.
            RefusedError: the server refuses; `code` says why.
            UnreachableError: no server answered for `unreachable_after`.
            WithdrawnError: its owner has withdrawn it while it waited.
            RevokedError: an operator has removed it from the line.
            SupersededError: a newer request of its group waits or runs instead.
        """
        return self._acquired(self._hold)

    def turn(self) -> Holding:
        """Wait for the lease, and leave it to the next program that asks with the same key.

        It is neither renewed nor released here: `id` and `token` say what was granted, and for its
        TTL it waits for that program. If this one is ended before, `abandon`ed or killed, nothing
        is lost: the place in line, or the lease, is for who asks with the key.

        Raises as `acquire`, and ValueError: it has no key.
        """
        if self._options.key is None:
            raise ValueError("only a lease with a key can be left to another program: set key")
        return self._acquired(self._note)

    def _acquired(self, have: Callable[[Grant], None]) -> Holding:
        """See `acquire`; `have` is called with the grant."""
        with self._state:
            if self._acquiring is not None:
                raise RuntimeError("this lease was used before: call client.lease() for each one")
            self._pid, key = os.getpid(), self._options.key
            self._keys = OwnKey() if key is None else StandingKey(key)
            own = self.own or OwnLeases(leases_here(), _beside(self))
            around = [*leases_around(os.environ), *own.around]
            if self._options.patience.wait <= SHORT_SECONDS:
                own = own._replace(around=[], beside=[*around, *own.beside])
            else:
                own = own._replace(around=around)
            self._acquiring = Acquiring(
                self._leases,
                self._options.wish,
                self._keys,
                self._options.patience,
                waits=lambda ticket: check_own(
                    self._leases, self._options.wish, ticket, own, LOG.warning
                ),
            )
        try:
            have(self._grant(self._acquiring))
        except NotGrantedError as failure:
            gave_up = failure.why == "timed_out"
            self._withdraw(self._acquiring, gave_up=gave_up, stays=failure.why != NESTED)
            raise _typed(failure) from None
        except BaseException:  # also KeyboardInterrupt: leave no ticket behind
            self._withdraw(self._acquiring)
            raise
        return self

    def release(self) -> None:
        """Release it; repeats do nothing. A server that does not answer is only logged."""
        if (calls := self._released()) is None:
            return
        troubles = dict(zip(calls, carry_through([*calls.values()], RELEASE_SECONDS)))
        for name, trouble in troubles.items():
            if trouble is not None:
                self._log(name, trouble)

    def release_at_exit(self, seconds: float) -> bool:
        """See `Releasable.release_at_exit`."""
        answered = True
        for name, call in (self._released() or {}).items():
            try:
                if seconds <= 0 or not answered:
                    raise UnreachableError("the server does not answer")
                call(seconds)
            except FAILURES as failure:
                answered = answered and not isinstance(failure, UnreachableError)
                self._log(name, failure)
        return answered

    def abandon(self) -> None:
        """Release it, or leave the line, while another thread may be in `acquire`."""
        with self._state:
            self._abandoned = True
            acquiring, held = self._acquiring, self._held
        if held:
            self.release()
        elif acquiring is not None:
            self._withdraw(acquiring)

    def end(self, error: BaseException | None) -> None:
        """Release it after the block, which ended with this error. Raises LeaseLostError."""
        if self._options.outcome and self._outcome is None:
            self._outcome = _outcome_of(error)
        self.release()
        if self._reason is not None and error is None:
            raise LeaseLostError(self.id, self._reason)

    def __enter__(self) -> Holding:
        """See `acquire`."""
        self.acquire()
        enter(self)  # without a block, another thread may release it
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Release it. Raises LeaseLostError: it was lost, and the block raised no other error."""
        self.end(error)

    @property
    def is_held(self) -> bool:
        """See `around.Held`."""
        return self._held

    @property
    def _forked(self) -> bool:
        """Whether another process acquires or has acquired it: this one is its forked child."""
        return self._pid not in (None, os.getpid())

    @property
    def _lease(self) -> Lease:
        if self._granted is None:
            raise RuntimeError("there is no lease yet: use this object in a with block")
        return self._granted

    def _grant(self, acquiring: Acquiring) -> Grant:
        while True:
            grant = acquiring.get()
            if grant.term is None or not grant.term.lost(elapsed()):
                return grant
            # This process was stopped in between: check the lease again.

    def _hold(self, grant: Grant) -> None:
        keeper = None
        if grant.term is not None:
            patient, grouped = self._options.patient, bool(self._options.wish.group)
            keeper = Renewer(self._leases, grant, grant.term, self._noticed, patient, grouped)
        with self._state:
            if self._abandoned:
                raise NotGrantedError("withdrawn", "withdrawn")
            self._granted, self._keeper, self._held = grant.lease, keeper, True
            HELD.add(self)
        if keeper is not None:
            keeper.start()

    def _note(self, grant: Grant) -> None:
        """Know what was granted, without holding it; its confirmation has just renewed it."""
        with self._state:
            if self._abandoned:
                raise NotGrantedError("withdrawn", "withdrawn")
            self._granted = grant.lease

    def _noticed(self) -> None:
        """Tell the caller of a loss, once; called by the threads that keep the lease."""
        reason = None if self._keeper is None else self._keeper.lost
        with self._state:
            if reason is None or self._notified or not self._held:
                return
            self._notified = True
        if self._options.on_lost is not None:
            self._options.on_lost(reason)

    def _released(self) -> dict[str, Callable[[float], object]] | None:
        """Stop renewing; return the calls that release it. None: there is nothing to release."""
        if self._forked:
            return None
        with self._state:
            if not self._held:
                return None
            keeper, lease = self._keeper, self._lease
            over = keeper is not None and keeper.over
            self._reason = None if keeper is None else keeper.lost
            self._held = False
        HELD.discard(self)
        leave(self)
        if keeper is not None:
            keeper.close()
        calls: dict[str, Callable[[float], object]] = {}
        if not over and self._reason is None:
            calls["release"] = lambda left: self._leases.release(lease.id, lease.token, left)
        if self._outcome is not None:
            result, detail, cause = self._outcome
            calls["report the outcome of"] = lambda left: self._leases.outcome(
                lease.id, lease.token, result, detail, left, cause
            )
        return calls

    def _withdraw(self, acquiring: Acquiring, *, gave_up: bool = False, stays: bool = True) -> None:
        """Leave no lease and no ticket behind, if the server answers in time.

        `gave_up`: the longest wait is over.

        With a key of the caller, both stay as they are: the next attempt continues, or already does
        while this one still waits for an answer. Unless it never `stays`.
        """
        acquiring.stop()
        if self._forked or not acquiring.uncertain:
            return
        with self._state:
            held, self._held = self._held, False
        if held:
            HELD.discard(self)
            if self._keeper is not None:
                self._keeper.close()
        if self._options.key is not None and stays:
            return
        leave = [lambda left: self._leave(acquiring, left, gave_up)]
        (trouble,) = carry_through(leave, RELEASE_SECONDS)
        if trouble is not None:
            self._log("withdraw", trouble)

    def _leave(self, acquiring: Acquiring, seconds: float, gave_up: bool) -> None:
        lease = acquiring.lease
        if lease is None:  # the answer was lost or is on its way: the same key gives the same lease
            lease = self._leases.ask(self._options.wish, self._keys.current(), seconds)
        if lease.state != "ended":
            with suppress(RefusedError):  # it has ended
                if gave_up and lease.state == "waiting":
                    self._leases.give_up(lease.id, seconds)
                else:
                    self._leases.release(lease.id, lease.token, seconds)

    def _log(self, action: str, trouble: Exception) -> None:
        name = "" if self._granted is None else f" {self._granted.id}"
        LOG.warning("cannot %s lease%s, which ends by its TTL: %s", action, name, trouble)


def _beside(held: Holding) -> list[str]:
    """Return the other leases of this process: of other threads and tasks."""
    return [one.id for one in [*HELD] if isinstance(one, Holding) and one is not held]


def _typed(failure: NotGrantedError) -> MoorageError:
    """Return the error for callers."""
    kind = ERRORS.get(failure.why)
    if kind is not None:
        return kind(str(failure))
    cause = failure.__cause__
    return cause if isinstance(cause, RefusedError) else failure


def _outcome_of(error: BaseException | None) -> tuple[str, str, str] | None:
    """Return the outcome of a block; None: it was interrupted from outside."""
    if error is None or (isinstance(error, SystemExit) and not error.code):
        return "ok", "", ""
    if isinstance(error, (AskedToStopError, LeaseLostError)):
        return None
    if isinstance(error, (Exception, SystemExit)):
        kind = type(error).__name__
        return "failed", kind, kind[:CAUSE_LENGTH_MAX]
    return None
