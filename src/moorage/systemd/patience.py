"""Asks the supervisor for more time while a long start or stop makes progress.

A thread looks, because the event loop may be what is busy. Progress is work that the kernel has
counted for this process: time of a processor, or bytes read and written. What waits for something
that never comes does neither, and is killed after TimeoutStartSec= or TimeoutStopSec=.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from moorage.systemd.notifier import Notifier

LOOK_SECONDS = 5.0
EXTENSION_SECONDS = 30.0
"""Until then, the next look asks again."""

LONGEST_SECONDS = 3_600.0
"""A start that still computes after an hour will never end."""

WORK_SECONDS = 0.01
"""Processor time in `LOOK_SECONDS` that is work; looking itself takes a hundredth of it."""

WORK_BYTES = 1 << 16
"""Bytes in `LOOK_SECONDS` that are work."""


@contextmanager
def patient(
    notifier: Notifier,
    status: str,
    *,
    look_seconds: float = LOOK_SECONDS,
    work: Callable[[], tuple[float, int]] | None = None,
) -> Iterator[None]:
    """Show `status`, and ask for more time as long as this is entered and something is done.

    A start asks no more once the service stops: the supervisor would add it to the stop.

    Args:
        notifier: to the supervisor.
        status: what is going on.
        look_seconds: the time between two looks.
        work: returns the seconds and bytes that were spent until now; by default the kernel's.
    """
    notifier.status(status)
    if not notifier.active:
        yield
        return
    ended = threading.Event()
    arguments = (notifier, ended, look_seconds, work or work_of_process)
    thread = threading.Thread(target=_look, args=arguments, name="moorage-patience", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _look(
    notifier: Notifier,
    ended: threading.Event,
    look_seconds: float,
    work: Callable[[], tuple[float, int]],
) -> None:
    until = time.monotonic() + LONGEST_SECONDS
    is_stop = notifier.stops
    seconds, count = work()
    while not ended.wait(look_seconds) and time.monotonic() < until and notifier.stops == is_stop:
        before_seconds, before_count = seconds, count
        seconds, count = work()
        if seconds - before_seconds >= WORK_SECONDS or count - before_count >= WORK_BYTES:
            notifier.extend(EXTENSION_SECONDS)
            notifier.alive()


def work_of_process() -> tuple[float, int]:
    """Return the processor time of this process in seconds, and the bytes it read and wrote."""
    return time.process_time(), _bytes_moved()


def _bytes_moved() -> int:
    try:
        with open("/proc/self/io", encoding="ascii") as file:
            return sum(int(line.split()[1]) for line in file if line.startswith(("rch", "wch")))
    except OSError:  # not every kernel counts them
        return 0
