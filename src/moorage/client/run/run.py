"""`moorage run` from end to end: a lease, the command, and the lease given back, on every path."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from moorage.client.run.api_types import Lease
from moorage.client.run.durations import spoken
from moorage.client.run.lease.acquire import Acquiring, Grant
from moorage.client.run.lease.api import Leases
from moorage.client.run.lease.idempotency_keys import FileKey, GivenKey, Keys, OwnKey
from moorage.client.run.lease.nesting import (
    SHARE,
    WAIT,
    NestedError,
    check_nesting,
    covers,
    leases_around,
)
from moorage.client.run.lease.renewer import Keeper, carry_through
from moorage.client.run.lease.waiting import InterruptedWaitError, await_grant
from moorage.client.run.lease.watching import SIGNALS_IF_LOST, Watch
from moorage.client.run.locks import locked
from moorage.client.run.parse import Order
from moorage.client.run.process.child import Child, CommandError, check_command
from moorage.client.run.process.job_control import JobControl
from moorage.client.run.process.signals import FORWARDED, Interrupted, Signals, end_by_interrupt
from moorage.client.run.progress import Notices
from moorage.client.run.terminal import Terminal
from moorage.client.run.variables import LEASE_PREFIX

LOST = 120
REFUSED = 121
POOL_UNKNOWN = 122
UNREACHABLE = 123
TIMED_OUT = 124
FAILED = 125
"""Wrong usage, or we cannot do what we must. 126 and 127 are as in shells."""

EXIT_CODES = {
    "refused": REFUSED,
    "nested": REFUSED,
    "pool_unknown": POOL_UNKNOWN,
    "unreachable": UNREACHABLE,
    "timed_out": TIMED_OUT,
}

DRY_RUN = "no server is named (MOORAGE_URL, --url): dry run, the command runs without a lease"


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
    order, notices, _ = this
    try:
        check_command(order.command[0])  # before anybody waits for it
    except CommandError as error:
        notices.say(str(error))
        return Done(error.code)
    if order.leases is None:
        notices.say(DRY_RUN if order.trouble is None else _without(order.trouble))
        return _carry(this, environment_of(os.environ, None))
    with ExitStack() as stack:
        try:
            keys = stack.enter_context(_keys(order))
        except BlockingIOError:
            trouble = f"another process uses {order.key_file}, and the lease of its key"
            return _no_lease(this, "", trouble)
        except OSError as error:
            return _no_lease(this, "", f"{order.key_file}: {error.strerror}")
        return _acquired(this, order.leases, keys)


def _acquired(this: Run, leases: Leases, keys: Keys) -> Done:
    """Acquire a lease, and run the command."""
    order, notices, signals = this

    def check() -> None:
        if order.nested != WAIT:
            check_nesting(leases, order.wish, os.environ)

    try:
        acquiring = Acquiring(leases, order.wish, keys, order.patience, check=check)
        grant = await_grant(acquiring, notices, signals, order.release_timeout)
    except InterruptedWaitError as interrupted:
        notices.say(f"{interrupted.told}, the command was not run")
        by_us = Interrupted.PROCESS if interrupted.number == signal.SIGINT else None
        return Done(128 + interrupted.number, interrupted=by_us)
    except Exception as failure:  # whatever it is: with best effort the command runs
        if (
            isinstance(failure, NestedError)
            and order.nested == SHARE
            and covers(failure.around, order.wish)
        ):
            notices.say(
                f"lease {failure.around.id} of {order.wish.pools}, shared with the outer run"
            )
            return _carry(this, os.environ, shared=True)
        return _no_lease(this, getattr(failure, "why", ""), str(failure))
    return _held(this, leases, keys, grant)


def _no_lease(this: Run, why: str, trouble: str) -> Done:
    """Run the command all the same, if that is wished."""
    order, notices, _ = this
    if not order.forgives(why):
        notices.say(f"no lease of {order.wish.pools}: {trouble}")
        return Done(EXIT_CODES.get(why, FAILED))
    notices.say(_without(trouble))
    return _carry(this, environment_of(os.environ, None))


def _without(trouble: str) -> str:
    return f"no lease: {trouble}; best effort, the command runs without one"


def _held(this: Run, leases: Leases, keys: Keys, grant: Grant) -> Done:
    """Run the command with the lease, and give that back."""
    order, notices, signals = this
    keeper = None
    if grant.term is not None:
        keeper = Keeper(leases, grant, grant.term, signals.wake, order.patient)
    notices.say(_granted(grant.lease, order))
    done: Done | None = None
    try:
        done = _carry(this, environment_of(os.environ, grant.lease), keeper)
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
        calls["release"] = lambda left: leases.release(lease.id, lease.token, left)
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


def _carry(
    this: Run, environment: Mapping[str, str], keeper: Keeper | None = None, shared: bool = False
) -> Done:
    """Run the command to its end: with a lease of ours, one that is `shared`, or without any."""
    order, notices, signals = this
    tied = SIGNALS_IF_LOST.get(order.on_lost) if keeper is not None or shared else None
    terminal = Terminal()
    try:
        child = Child(order.command, environment, tied, terminal)
    except CommandError as error:
        terminal.close()
        notices.say(str(error))
        return Done(error.code)
    watch = Watch(child, keeper, order.on_lost, order.kill_after, notices)
    job = JobControl(child, terminal, signals, notices, watch.settle)
    try:
        if keeper is not None:
            keeper.start()
        told = False
        while (code := child.look()) is None:
            job.look()
            for number in signals.wait(watch.seconds()):
                if number in FORWARDED:
                    child.tell(number)
                    told = told or number == signal.SIGINT
                elif number == signal.SIGCONT:
                    job.resume()
            watch.look()
        if watch.ended_it:
            watch.finish(signals)
            return Done(LOST)
    finally:
        job.close()
    return Done(code, by_itself=True, interrupted=_interrupted(child, told))


def _interrupted(child: Child, told: bool) -> Interrupted | None:
    """Return what else the SIGINT that ended a command was meant for; None: another end.

    `told`: one was sent to us, and on to the command. Else Ctrl-C has reached the command alone, as
    it had the terminal: without us it would have reached all of our process group.
    """
    if child.killed_by != signal.SIGINT:
        return None
    return Interrupted.GROUP if child.had_terminal and not told else Interrupted.PROCESS


def environment_of(inherited: Mapping[str, str], lease: Lease | None) -> dict[str, str]:
    """Return the command's variables: those there are, and what it may know of its lease."""
    kept = {name: value for name, value in inherited.items() if not name.startswith(LEASE_PREFIX)}
    outer = " ".join(leases_around(inherited))
    if lease is None:
        return {**kept, f"{LEASE_PREFIX}OUTER": outer} if outer else kept
    told = {
        "ID": lease.id,
        "TOKEN": lease.token or "",
        "SLOTS": " ".join(lease.slot_names),
        "SLOTS_CSV": ",".join(lease.slot_names),
        "POOL": " ".join(lease.pools),
        "EXPIRES_AT": lease.expires_at or "",
        "HOLD_UNTIL": lease.hold_until or "",
        "OUTER": outer,
    }
    return {**kept, **{f"{LEASE_PREFIX}{name}": value for name, value in told.items()}}


@contextmanager
def _keys(order: Order) -> Iterator[Keys]:
    """Provide the key of this run. Raises OSError of the file that is to keep it."""
    if order.key_file is None:
        yield OwnKey() if order.key is None else GivenKey(order.key)
        return
    with locked(order.key_file, wait=False):
        yield FileKey(order.key_file)


def _granted(lease: Lease, order: Order) -> str:
    slots = f" ({' '.join(lease.slot_names)})" if lease.slot_names else ""
    hold = "" if lease.hold is None else f", held for {spoken(lease.hold)}"
    return f"lease {lease.id} of {order.wish.pools}{slots}{hold}"
