"""`moorage agent wait`: waits until a consumer may start on this machine.

It fails closed: the exit code is 0 only if the server has said that the consumer may start.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import NamedTuple

from moorage.client.agent.api import AgentServer
from moorage.client.agent.api_types import StartAnswer
from moorage.client.agent.arguments import Words, connector_of, files_of
from moorage.client.agent.backoff import Backoff
from moorage.client.agent.identity import agent_of, boot_of, uuid_of
from moorage.client.run.api_types import StrangeAnswerError
from moorage.client.run.clock import elapsed
from moorage.client.run.exit_codes import CONFLICT, FAILED, NOT_GRANTED, UNREACHABLE
from moorage.client.run.lease.acquire import POLL_SECONDS_MAX
from moorage.client.run.parse import UsageError, duration_of
from moorage.client.run.progress import Progress
from moorage.client.transport import NOT_FOUND, UNROUTED, RefusedError, UnreachableError

TIMEOUT_SECONDS = 120.0
PAUSE_SECONDS = 1.0
"""The least time between two requests."""

PAUSE_SECONDS_MAX = 10.0

STALE_BOOT = "stale_boot"
NO_PLACE = (NOT_FOUND, 409, 410)
"""Statuses of refusals: the consumer has no place here, or this machine is another one by now."""


class Verdict(NamedTuple):
    """An exit code with its message. `final`: asking again would not help."""

    exit_code: int
    message: str
    final: bool
    retry_after: float = 0.0


def wait_to_start(words: Words, notices: Progress) -> int:
    """Wait until the consumer may start; return the exit code.

    Raises UsageError; OSError: the id of the boot cannot be read.
    """
    if not words["consumer"]:
        raise UsageError("no consumer: set its UUID with --consumer")
    consumer = uuid_of(words, "consumer")
    server = AgentServer(connector_of(words), agent_of(words))
    timeout = duration_of(words, "timeout", TIMEOUT_SECONDS)
    try:
        boot_id = boot_of(files_of(words))
    except ValueError as error:
        notices.say(f"cannot read the id of the boot: {error}")
        return FAILED

    def pause(seconds: float) -> None:
        threading.Event().wait(seconds)

    verdict = await_start(
        lambda wait: server.may_start(consumer, boot_id, wait),
        timeout,
        elapsed,
        pause,
        lambda text: notices.standing(f"{consumer} waits to start: {text}", elapsed()),
    )
    notices.clear()
    if verdict.exit_code:
        notices.say(f"{consumer} must not start: {verdict.message}")
    return verdict.exit_code


def await_start(
    ask: Callable[[float], StartAnswer],
    timeout: float,
    clock: Callable[[], float],
    pause: Callable[[float], None],
    show: Callable[[str], None],
) -> Verdict:
    """Ask until the answer is final or the time is over; return the last verdict.

    Args:
        ask: asks the server, which waits up to this many seconds.
        timeout: in seconds; the last answer may arrive some seconds later.
        clock: a time in seconds that does not jump.
        pause: waits this many seconds.
        show: shows why the consumer waits.
    """
    until = clock() + timeout
    backoff = Backoff(PAUSE_SECONDS, PAUSE_SECONDS_MAX)
    while True:
        asked = clock()
        verdict = _verdict(ask, min(POLL_SECONDS_MAX, max(0.0, until - asked)))
        left = until - clock()
        if verdict.final or left <= 0:
            return verdict
        show(verdict.message)
        if verdict.exit_code == NOT_GRANTED:
            backoff.reset()
            delay = PAUSE_SECONDS - (clock() - asked)
        else:
            delay = max(PAUSE_SECONDS, backoff.next(verdict.retry_after))
        pause(max(0.0, min(delay, left)))


def _verdict(ask: Callable[[float], StartAnswer], wait: float) -> Verdict:
    try:
        answer = ask(wait)
    except UnreachableError as error:
        return Verdict(UNREACHABLE, str(error), final=False)
    except RefusedError as refusal:
        return _refused(refusal)
    except StrangeAnswerError as error:
        return Verdict(FAILED, str(error), final=True)
    if answer.may_start:
        return Verdict(0, answer.reason, final=True)
    return Verdict(NOT_GRANTED, answer.reason, final=False)


def _refused(refusal: RefusedError) -> Verdict:
    if refusal.is_temporary or (refusal.status == NOT_FOUND and refusal.code in UNROUTED):
        return Verdict(UNREACHABLE, str(refusal), False, refusal.retry_after or 0.0)
    if refusal.code == STALE_BOOT:
        # Early in a boot the agent has not registered it yet.
        return Verdict(CONFLICT, str(refusal), final=False)
    return Verdict(CONFLICT if refusal.status in NO_PLACE else FAILED, str(refusal), final=True)
