"""`moorage run` from end to end: a lease, the command, and the lease given back, on every path."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from typing import NamedTuple

from moorage.client.run.acquiring import Acquiring, Grant
from moorage.client.run.answers import Lease
from moorage.client.run.calls import Leases
from moorage.client.run.children import Child, CommandError, check_command
from moorage.client.run.durations import spoken
from moorage.client.run.keeping import Keeper, carry_through
from moorage.client.run.keys import FileKey, GivenKey, Keys, OwnKey
from moorage.client.run.notices import Notices
from moorage.client.run.orders import Order
from moorage.client.run.signals import FORWARDED, Interrupted, Signals, end_by_interrupt
from moorage.client.run.terms import elapsed
from moorage.client.run.variables import LEASE_PREFIX
from moorage.client.run.waiting import InterruptedWaitError, await_grant

LOST = 120
REFUSED = 121
POOL_UNKNOWN = 122
UNREACHABLE = 123
TIMED_OUT = 124
FAILED = 125
"""Wrong usage, or we cannot do what we must. 126 and 127 are as in shells."""

EXIT_CODES = {
    "refused": REFUSED,
    "pool_unknown": POOL_UNKNOWN,
    "unreachable": UNREACHABLE,
    "timed_out": TIMED_OUT,
}

DRY_RUN = "no server is named (MOORAGE_URL, --url): dry run, the command runs without a lease"
LOOK_SECONDS = 5.0
"""The longest time until a clock is looked at again."""

SIGNALS_IF_LOST = {"term": signal.SIGTERM, "kill": signal.SIGKILL}


class Done(NamedTuple):
    """How a command has ended."""

    code: int
    by_itself: bool = False
    """It ran, and we have not ended it: that tells something of what was started."""
    interrupted: Interrupted | None = None
    """What else SIGINT was meant for, if that ended the command or the wait."""


class Run(NamedTuple):
    """One run: what is asked for, where to say things, and what signals come."""

    order: Order
    notices: Notices
    signals: Signals


def run(order: Order, notices: Notices) -> int:
    """Carry the command; return the exit code, its own or one of ours.

    If SIGINT has ended the command or the wait it ends this process, too: shells go on with a
    script or a loop after whatever has ended in another way.
    """
    with Signals() as signals:
        done = _run(Run(order, notices, signals))
    if done.interrupted is not None:
        end_by_interrupt(done.interrupted)
    return done.code


def _run(this: Run) -> Done:
    order, notices, signals = this
    try:
        check_command(order.command[0])  # before anybody waits for it
    except CommandError as error:
        notices.say(str(error))
        return Done(error.code)
    if order.leases is None:
        notices.say(DRY_RUN if order.trouble is None else _without(order.trouble))
        return _carry(this, None, None)
    keys = _keys(order)
    try:
        acquiring = Acquiring(order.leases, order.wish, keys, order.patience)
        grant = await_grant(acquiring, notices, signals, order.release_timeout)
    except InterruptedWaitError as interrupted:
        notices.say(f"{interrupted} while waiting: withdrawn, the command was not run")
        by_us = Interrupted.PROCESS if interrupted.number == signal.SIGINT else None
        return Done(128 + interrupted.number, interrupted=by_us)
    except Exception as failure:  # whatever it is: with best effort the command runs
        why = getattr(failure, "why", "")
        if not order.forgives(why):
            notices.say(f"no lease of {order.wish.pools}: {failure}")
            return Done(EXIT_CODES.get(why, FAILED))
        notices.say(_without(str(failure)))
        return _carry(this, None, None)
    return _held(this, order.leases, keys, grant)


def _without(trouble: str) -> str:
    return f"no lease: {trouble}; best effort, the command runs without one"


def _held(this: Run, leases: Leases, keys: Keys, grant: Grant) -> Done:
    """Run the command with the lease, and give that back."""
    order, notices, signals = this
    keeper = None if grant.term is None else Keeper(leases, grant, grant.term, signals.wake)
    notices.say(_granted(grant.lease, order))
    done: Done | None = None
    try:
        done = _carry(this, grant.lease, keeper)
        return done
    finally:
        if keeper is not None:
            keeper.close()
        _part(this, leases, keys, grant.lease, done, over=keeper is not None and keeper.over)


def _part(
    this: Run, leases: Leases, keys: Keys, lease: Lease, done: Done | None, over: bool
) -> None:
    """Give the lease back unless it is over, and tell the outcome, for which it is never late."""
    order, notices, _ = this
    code = None if done is None or not done.by_itself else done.code
    calls: dict[str, Callable[[float], object]] = {}
    if not over:
        calls["release"] = lambda left: leases.release(lease.id, left)
    if order.outcome and code is not None:
        result = "ok" if code == 0 else "failed"
        calls["outcome"] = lambda left: leases.outcome(
            lease.id, lease.token, result, f"exit code {code}", left
        )
    troubles = dict(zip(calls, carry_through([*calls.values()], order.release_timeout)))
    if troubles.get("outcome") is not None:
        notices.say(f"the outcome is not told ({troubles['outcome']})")
    if over:
        return
    if troubles["release"] is not None:
        notices.say(f"lease {lease.id} is not released ({troubles['release']}): it ends by its TTL")
        return
    try:
        keys.spend()
    except OSError as error:
        notices.say(f"the key file stays: {error}")


def _carry(this: Run, lease: Lease | None, keeper: Keeper | None) -> Done:
    """Run the command to its end, with or without a lease."""
    order, notices, signals = this
    tied = None if keeper is None else SIGNALS_IF_LOST.get(order.on_lost)
    try:
        child = Child(order.command, environment_of(os.environ, lease), tied)
    except CommandError as error:
        notices.say(str(error))
        return Done(error.code)
    signals.before_stop = child.suspend
    if keeper is not None:
        keeper.start()
    watch, told = _Watch(this, child, keeper), False
    while (code := child.look()) is None:
        for number in signals.wait(watch.seconds()):
            if number in FORWARDED:
                child.signal(number)
                told = told or number == signal.SIGINT
            elif number == signal.SIGCONT:
                child.resume()
        watch.look()
    if watch.ended_it:
        return Done(LOST)
    return Done(code, by_itself=True, interrupted=_interrupted(child, told))


def _interrupted(child: Child, told: bool) -> Interrupted | None:
    """Return what else the SIGINT that ended a command was meant for; None: another end.

    `told`: one was sent to us, and on to the command. Else Ctrl-C has reached the command alone, as
    it had the terminal: without us it would have reached all of our process group.
    """
    if child.killed_by != signal.SIGINT:
        return None
    return Interrupted.GROUP if child.had_terminal and not told else Interrupted.PROCESS


class _Watch:
    """Looks after the lease while the command runs, and acts if it is lost."""

    def __init__(self, this: Run, child: Child, keeper: Keeper | None) -> None:
        self._on_lost = this.order.on_lost
        self._kill_after = this.order.kill_after
        self._notices = this.notices
        self._child = child
        self._keeper = keeper
        self._kill_at: float | None = None
        self.ended_it = False

    def seconds(self) -> float:
        """Return how long there is nothing to look at."""
        left = LOOK_SECONDS
        if self._keeper is not None:
            left = min(left, self._keeper.seconds_left)
        if self._kill_at is not None:
            left = min(left, self._kill_at - elapsed())
        return left

    def look(self) -> None:
        """Act on what has become of the lease."""
        if self._kill_at is not None and elapsed() >= self._kill_at:
            self._kill_at = None
            self._child.signal(signal.SIGKILL)
        if self._keeper is None or self._child.look() is not None:
            return
        lost = self._keeper.lost
        if lost is not None:
            self._keeper.close()
            self._keeper = None
            self._act(lost)
        elif self._keeper.over:
            self._keeper.close()
            self._keeper = None
            self._notices.say("the hold is over: the lease has ended, the command goes on")

    def _act(self, lost: str) -> None:
        number = SIGNALS_IF_LOST.get(self._on_lost)
        if number is None:
            self._notices.say(f"the lease is lost: {lost}; the command goes on without it")
            return
        self._notices.say(f"the lease is lost: {lost}; the command gets {number.name}")
        self.ended_it = True
        self._child.signal(number)
        self._child.signal(signal.SIGCONT)
        if number == signal.SIGTERM:
            self._kill_at = elapsed() + self._kill_after


def environment_of(inherited: Mapping[str, str], lease: Lease | None) -> dict[str, str]:
    """Return the command's variables: those there are, and what it may know of its lease."""
    kept = {name: value for name, value in inherited.items() if not name.startswith(LEASE_PREFIX)}
    if lease is None:
        return kept
    told = {
        "ID": lease.id,
        "TOKEN": lease.token or "",
        "SLOTS": " ".join(lease.slot_names),
        "SLOTS_CSV": ",".join(lease.slot_names),
        "POOL": " ".join(lease.pools),
        "EXPIRES_AT": lease.expires_at or "",
        "HOLD_UNTIL": lease.hold_until or "",
    }
    return {**kept, **{f"{LEASE_PREFIX}{name}": value for name, value in told.items()}}


def _keys(order: Order) -> Keys:
    if order.key is not None:
        return GivenKey(order.key)
    return OwnKey() if order.key_file is None else FileKey(order.key_file)


def _granted(lease: Lease, order: Order) -> str:
    slots = f" ({' '.join(lease.slot_names)})" if lease.slot_names else ""
    hold = "" if lease.hold is None else f", held for {spoken(lease.hold)}"
    return f"lease {lease.id} of {order.wish.pools}{slots}{hold}"
