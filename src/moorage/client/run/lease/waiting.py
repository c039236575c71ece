"""Waits for a lease in the main thread and shows the standing; a signal ends the wait at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable

from moorage.client.run.clock import elapsed
from moorage.client.run.lease.acquire import Acquiring, Grant
from moorage.client.run.lease.renewer import give_back
from moorage.client.run.process.signals import ENDING, SignalCollector
from moorage.client.run.progress import Progress, standing_of, ticket_of

LIVE_POLL_SECONDS = 5.0
"""The poll interval on a terminal, where a user watches."""


class InterruptedWaitError(Exception):
    """A signal arrived during the wait; `number` is its number.

    `withdrawn`: the server has confirmed that there is no lease and no ticket.
    """

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number
        self.withdrawn = False

    @property
    def text(self) -> str:
        """The result, as text for people."""
        if self.withdrawn:
            return f"{self} while waiting: withdrawn"
        return (
            f"{self} while waiting: the server does not answer, so the request may still be there"
        )


def await_grant(
    acquiring: Acquiring,
    notices: Progress,
    signals: SignalCollector,
    release_timeout: float,
    check: Callable[[], None] = lambda: None,
) -> Grant:
    """Return the lease when it is granted.

    `check` is called about every second; it raises NotGrantedError to end the wait.

    Raises NotGrantedError, InterruptedWaitError, and OSError from a key's file. Then there is no
    lease and no ticket, unless the withdrawal was not confirmed within `release_timeout` seconds:
    in that case `acquiring.uncertain` is True.
    """
    if notices.live:
        acquiring.poll_within(LIVE_POLL_SECONDS)
    results: list[Grant | Exception] = []
    shown: list[str] = []

    def work() -> None:
        try:
            results.append(acquiring.get())
        except Exception as failure:
            results.append(failure)
        signals.wake()

    thread = _begun(work)
    try:
        while True:
            while not results:
                for number in signals.wait(1.0):
                    if number in ENDING:
                        raise InterruptedWaitError(number)
                check()
                _tell(acquiring, notices)
                if not results:
                    _show(acquiring, notices, shown)
            thread.join()
            result = results.pop()
            if isinstance(result, Exception):
                raise result
            if result.term is None or not result.term.lost(elapsed()):
                return result
            thread = _begun(work)  # this process was stopped in between: check the lease again
    except BaseException as failure:
        notices.clear()
        gave_up = getattr(failure, "why", "") == "timed_out"
        _withdraw(acquiring, thread, release_timeout, gave_up)
        if isinstance(failure, InterruptedWaitError):
            failure.withdrawn = not acquiring.uncertain
        raise
    finally:
        notices.clear()


def _begun(work: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def _tell(acquiring: Acquiring, notices: Progress) -> None:
    while acquiring.notes:
        notices.say(acquiring.notes.pop(0))


def _show(acquiring: Acquiring, notices: Progress, shown: list[str]) -> None:
    """Show the standing; first, once, with the ticket's id. `shown` are the ids that were shown."""
    lease = acquiring.lease
    if lease is not None and lease.waiting is not None and lease.id not in shown:
        shown.append(lease.id)
        text = ticket_of(lease.id, acquiring.wish.pools, lease.waiting, acquiring.leases.pages)
        notices.first_standing(text, elapsed())
    else:
        notices.standing(_standing(acquiring), elapsed())


def _standing(acquiring: Acquiring) -> str:
    waiting = None if acquiring.lease is None else acquiring.lease.waiting
    return standing_of(
        acquiring.wish.pools, waiting, acquiring.waited, acquiring.trouble, acquiring.age
    )


def _withdraw(
    acquiring: Acquiring, thread: threading.Thread, seconds: float, gave_up: bool
) -> None:
    """Leave the line; wait first for the answer to the first request, which has the lease's id."""
    until = elapsed() + seconds
    acquiring.stop()
    if acquiring.lease is None:
        thread.join(seconds)
    lease = acquiring.lease
    if lease is not None and lease.state != "ended":
        trouble = give_back(acquiring.leases, lease, max(0.0, until - elapsed()), gave_up=gave_up)
        if trouble is None or getattr(trouble, "code", "") == "lease_not_found":
            acquiring.uncertain = False
    thread.join(max(0.0, until - elapsed()))
