"""`moorage run` from end to end: acquires a lease, runs the command, always releases the lease."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, NamedTuple

from moorage.client.run.api_types import CAUSE_LENGTH_MAX, Lease
from moorage.client.run.durations import spoken
from moorage.client.run.exit_codes import RUN_BY_CAUSE, RUN_FAILED, RUN_LOST
from moorage.client.run.labels import accepted
from moorage.client.run.lease.acquire import SUPERSEDED, Acquiring, Grant
from moorage.client.run.lease.api import Leases
from moorage.client.run.lease.idempotency_keys import FileKey, GivenKey, IdempotencyKeys, OwnKey
from moorage.client.run.lease.nesting import (
    SHARE,
    WAIT,
    NestedError,
    OwnLeases,
    check_nesting,
    check_own,
    covers,
    leases_around,
)
from moorage.client.run.lease.renewer import Renewer, carry_through, keep_or_release
from moorage.client.run.lease.waiting import InterruptedWaitError, await_grant
from moorage.client.run.lease.watching import SIGNALS_IF_LOST, CommandWatch
from moorage.client.run.locks import locked
from moorage.client.run.parse import RunRequest
from moorage.client.run.printing import printable
from moorage.client.run.process.child import Child, CommandError, check_command
from moorage.client.run.process.job_control import JobControl
from moorage.client.run.process.signals import (
    ENDING,
    FORWARDED,
    Interrupted,
    SignalCollector,
    end_by_interrupt,
)
from moorage.client.run.progress import Progress
from moorage.client.run.terminal import Terminal
from moorage.client.run.variables import LEASE_PREFIX

if TYPE_CHECKING:
    from moorage.client.run.process.output import Output

PAUSED = "paused"
"""Why a ticket waits for a pool that an operator has paused, see `wire.admission.Waiting.code`."""

DRY_RUN = (
    "no server is set (MOORAGE_URL, --url): dry run, the command runs without a lease, and without"
    " a limit"
)


class CommandEnd(NamedTuple):
    """How a command has ended."""

    code: int
    by_itself: bool = False
    """It ran and was not ended by the watch, so its exit code is an outcome of the start."""
    interrupted: Interrupted | None = None
    """The further target of the SIGINT that ended the command or the wait."""
    throttled: str | None = None
    """What it printed that says that it was throttled."""
    cancelled: bool = False
    """Somebody has ended it by a signal, so that its end is no failure."""

    @property
    def failed(self) -> bool:
        """Whether the command has failed by itself."""
        return self.by_itself and self.code != 0 and not self.cancelled


class Run(NamedTuple):
    """One run: its order, the output for messages, and the incoming signals."""

    order: RunRequest
    notices: Progress
    signals: SignalCollector
    outputs: list[Output]
    """The output that passes through this process, if any."""


def run(order: RunRequest, notices: Progress) -> int:
    """Run the command with a lease; return the command's exit code, or one of `moorage run`.

    If SIGINT has ended the command or the wait, it ends this process as well: after any other end,
    shells continue with the rest of a script or a loop.
    """
    with SignalCollector() as signals:
        this = Run(order, notices, signals, [])
        done = _run(this)
        for output in this.outputs:
            output.close(lambda: any(number in ENDING for number in signals.wait(0)))
    if done.interrupted is not None:
        end_by_interrupt(done.interrupted)
    return done.code


def _run(this: Run) -> CommandEnd:
    order, notices = this.order, this.notices
    try:
        check_command(order.command[0])  # before waiting for a lease
    except CommandError as error:
        notices.say(str(error))
        return CommandEnd(error.code)
    if order.leases is None:
        notices.say(DRY_RUN if order.trouble is None else _without(order.trouble))
        return _carry(this, environment_of(os.environ, None))
    with ExitStack() as stack:
        try:
            keys = stack.enter_context(_keys(order))
        except BlockingIOError:
            trouble = f"another process uses {order.key_file} and the lease of this key"
            return _no_lease(this, "", trouble)
        except OSError as error:
            return _no_lease(this, "", f"{order.key_file}: {error.strerror}")
        return _acquired(this, order.leases, keys)


def _acquired(this: Run, leases: Leases, keys: IdempotencyKeys) -> CommandEnd:
    """Acquire a lease, then run the command."""
    order, notices, signals, _ = this

    def check() -> None:
        if order.nested != WAIT:
            check_nesting(leases, order.wish, os.environ)

    def waits(ticket: Lease) -> bool:
        own = OwnLeases(leases_around(os.environ))
        return check_own(leases, order.wish, ticket, own, acquiring.notes.append)

    acquiring = Acquiring(leases, order.wish, keys, order.patience, check=check, waits=waits)
    try:
        grant = await_grant(acquiring, notices, signals, order.release_timeout)
    except InterruptedWaitError as interrupted:
        notices.say(f"{interrupted.text}, the command was not run")
        by_us = Interrupted.PROCESS if interrupted.number == signal.SIGINT else None
        return CommandEnd(128 + interrupted.number, interrupted=by_us)
    except Exception as failure:  # with best effort, the command runs after any failure
        if (
            isinstance(failure, NestedError)
            and order.nested == SHARE
            and covers(failure.around, order.wish)
        ):
            notices.say(
                f"shares lease {failure.around.id} of {order.wish.pools} with the outer run"
            )
            return _carry(this, os.environ, shared=True)
        if getattr(failure, "why", "") == SUPERSEDED:
            _spend(this, keys)  # the next start is another attempt
        waiting = None if acquiring.lease is None else acquiring.lease.waiting
        paused = waiting is not None and waiting.code == PAUSED
        return _no_lease(this, getattr(failure, "why", ""), str(failure), paused)
    return _held(this, leases, keys, grant)


def _no_lease(this: Run, why: str, trouble: str, paused: bool = False) -> CommandEnd:
    """Run the command without a lease, if the options permit this."""
    order, notices = this.order, this.notices
    if not order.forgives(why, paused):
        notices.say(f"no lease of {order.wish.pools}: {trouble}")
        return CommandEnd(RUN_BY_CAUSE.get(why, RUN_FAILED))
    notices.say(_without(trouble))
    return _carry(this, environment_of(os.environ, None))


def _without(trouble: str) -> str:
    return f"best effort, the command runs without a lease: {trouble}"


def _held(this: Run, leases: Leases, keys: IdempotencyKeys, grant: Grant) -> CommandEnd:
    """Run the command with the lease, then release the lease."""
    order, notices, signals, _ = this
    keeper = None
    if grant.term is not None:
        stoppable = order.wish.may_be_stopped
        keeper = Renewer(leases, grant, grant.term, signals.wake, order.patient, stoppable)
    notices.say(_granted(grant.lease, order))
    done: CommandEnd | None = None
    try:
        output = _output(this)
        done = _carry(this, environment_of(os.environ, grant.lease), keeper, output=output)
        return done
    finally:
        if keeper is not None:
            keeper.close()
        _part(this, leases, keys, grant.lease, done, over=keeper is not None and keeper.over)


def _part(
    this: Run,
    leases: Leases,
    keys: IdempotencyKeys,
    lease: Lease,
    done: CommandEnd | None,
    over: bool,
) -> None:
    """Release the lease unless it is over, and report the outcome, even if it is over."""
    order, notices = this.order, this.notices
    code = None if done is None or not done.by_itself else done.code
    calls: dict[str, Callable[[float], object]] = {}
    kept: list[str] = []
    keep = order.keep_on_failure if done is not None and done.failed else None
    if not over and keep is not None:
        # Only the name of the program: any other word may be a password.
        reason = f"{accepted(os.path.basename(order.command[0]))}: exit code {code}"
        calls["release"] = lambda left: kept.append(
            keep_or_release(leases, lease, keep, reason, left)
        )
    elif not over:
        calls["release"] = lambda left: leases.release(lease.id, lease.token, left)
    if order.outcome and done is not None and code is not None:
        result, cause = _result(order, done)
        calls["outcome"] = lambda left: leases.outcome(
            lease.id, lease.token, result, f"exit code {code}", left, cause
        )
    troubles = dict(zip(calls, carry_through([*calls.values()], order.release_timeout)))
    if troubles.get("outcome") is not None:
        notices.say(f"cannot report the outcome: {troubles['outcome']}")
    if over:
        return
    if troubles["release"] is not None:
        notices.say(
            f"cannot release lease {lease.id}, which ends by its TTL: {troubles['release']}"
        )
        return
    for note in kept[:1]:
        notices.say(note)
    _spend(this, keys)


def _spend(this: Run, keys: IdempotencyKeys) -> None:
    try:
        keys.spend()
    except OSError as error:
        this.notices.say(f"cannot remove the key file: {error}")


def _result(order: RunRequest, done: CommandEnd) -> tuple[str, str]:
    """Return the outcome of a command, and its cause."""
    if done.throttled is not None:
        return "throttled", done.throttled
    if done.code == 0:
        return "ok", ""
    result = "throttled" if done.code in order.throttled_exits else "failed"
    return result, f"exit code {done.code}"


def _output(this: Run) -> Output | None:
    """Return what the command writes into, if its output is searched."""
    pattern = this.order.throttled_when
    if pattern is None:
        return None
    from moorage.client.run.process.output import Output  # deferred: most runs search nothing

    try:
        this.outputs.append(Output(pattern, this.signals.wake))
    except OSError as error:
        this.notices.say(f"cannot search the output: {error.strerror}")
        return None
    return this.outputs[-1]


def _found(output: Output | None, notices: Progress) -> str | None:
    """Return what says in the output of an ended command that it was throttled."""
    if output is None:
        return None
    output.finish()
    if output.trouble is not None:
        notices.say(f"the output is not searched: {output.trouble}")
    if output.found is None:
        return None
    text = " ".join(output.found[: 4 * CAUSE_LENGTH_MAX].decode(errors="replace").split())
    return printable(text)[:CAUSE_LENGTH_MAX] or "output"


def _carry(
    this: Run,
    environment: Mapping[str, str],
    keeper: Renewer | None = None,
    shared: bool = False,
    output: Output | None = None,
) -> CommandEnd:
    """Run the command to its end: with its own lease, a `shared` one, or none."""
    order, notices, signals, _ = this
    tied = SIGNALS_IF_LOST.get(order.on_lost) if keeper is not None or shared else None
    terminal = Terminal()
    try:
        child = Child(order.command, environment, tied, terminal, output)
    except CommandError as error:
        terminal.close()
        notices.say(str(error))
        return CommandEnd(error.code)
    watch = CommandWatch(child, keeper, order.on_lost, order.kill_after, notices)
    job = JobControl(child, terminal, signals, notices, watch.settle)
    try:
        if keeper is not None:
            keeper.start()
        forwarded = ended = False
        while (code := child.look()) is None:
            job.look()
            for number in signals.wait(watch.seconds()):
                if number in FORWARDED:
                    child.tell(number)
                    forwarded = forwarded or number == signal.SIGINT
                    ended = ended or number in ENDING
                elif number == signal.SIGCONT:
                    job.resume()
            watch.look()
            if output is not None:
                output.search()
        if watch.ended_it:
            watch.finish(signals)
            return CommandEnd(watch.stopped_as or RUN_LOST)
    finally:
        job.close()
    return CommandEnd(
        code,
        by_itself=True,
        interrupted=_interrupted(child, forwarded),
        throttled=_found(output, notices),
        cancelled=ended or child.killed_by in ENDING,
    )


def _interrupted(child: Child, forwarded: bool) -> Interrupted | None:
    """Return the further target of the SIGINT that ended a command; None if it ended otherwise.

    `forwarded`: this process received the SIGINT and forwarded it. Otherwise, Ctrl-C reached only
    the command, which had the terminal; without `moorage run`, it would have reached the whole
    group.
    """
    if child.killed_by != signal.SIGINT:
        return None
    return Interrupted.GROUP if child.had_terminal and not forwarded else Interrupted.PROCESS


def environment_of(inherited: Mapping[str, str], lease: Lease | None) -> dict[str, str]:
    """Return the command's environment: the inherited one, and variables about its lease."""
    kept = {name: value for name, value in inherited.items() if not name.startswith(LEASE_PREFIX)}
    outer = " ".join(leases_around(inherited))
    if lease is None:
        return {**kept, f"{LEASE_PREFIX}OUTER": outer} if outer else kept
    variables = {
        "ID": lease.id,
        "TOKEN": lease.token or "",
        "SLOTS": " ".join(lease.slot_names),
        "SLOTS_CSV": ",".join(lease.slot_names),
        "POOL": " ".join(lease.pools),
        "EXPIRES_AT": lease.expires_at or "",
        "HOLD_UNTIL": lease.hold_until or "",
        "OUTER": outer,
    }
    return {**kept, **{f"{LEASE_PREFIX}{name}": value for name, value in variables.items()}}


@contextmanager
def _keys(order: RunRequest) -> Iterator[IdempotencyKeys]:
    """Provide the key of this run. Raises OSError: the key file cannot be used."""
    if order.key_file is None:
        yield OwnKey() if order.key is None else GivenKey(order.key)
        return
    with locked(order.key_file, wait=False):
        yield FileKey(order.key_file)


def _granted(lease: Lease, order: RunRequest) -> str:
    slots = f" ({' '.join(lease.slot_names)})" if lease.slot_names else ""
    hold = "" if lease.lasts is None else f"; it ends after {spoken(lease.lasts)}"
    return f"got lease {lease.id} of {lease.pools_of(order.wish)}{slots}{hold}"
