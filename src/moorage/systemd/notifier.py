"""Sends notifications to systemd, or to any supervisor that sets NOTIFY_SOCKET: `sd_notify(3)`."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

SEND_SECONDS = 0.2
"""How long a supervisor that does not read may delay the service, for each notification."""

MICROSECONDS = 1_000_000


class Notifier:
    """Tells the supervisor how the service is; without NOTIFY_SOCKET it does nothing.

    A notification that cannot be sent never ends the service. Threads may use it.
    """

    def __init__(
        self,
        environment: Mapping[str, str],
        failed: Callable[[str], object],
        pid: int | None = None,
    ) -> None:
        """Create it.

        Args:
            environment: with NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID, if there are any.
            failed: called once, with a line, if a notification cannot be sent.
            pid: of this process.
        """
        self._failed = failed
        self._address = environment.get("NOTIFY_SOCKET", "")
        self._complained = False
        self._ready = False
        self._stops = False
        self._shown: str | None = None
        self.watchdog_seconds = _watchdog_seconds(environment, pid or os.getpid())
        """Seconds within which each `alive` must follow the one before; None: none is expected."""

    @property
    def active(self) -> bool:
        """Whether there is a supervisor."""
        return bool(self._address)

    @property
    def is_ready(self) -> bool:
        """Whether `ready` was called."""
        return self._ready

    @property
    def stops(self) -> bool:
        """Whether `stopping` was called."""
        return self._stops

    def ready(self) -> None:
        """The start is complete; ignored if the service stops already."""
        if not self._stops:
            self._ready = True
            self._send("READY=1")

    def status(self, text: str) -> None:
        """Show what the service does, in one line of `systemctl status`."""
        if text != self._shown:
            self._shown = text
            self._send("STATUS=" + " ".join(text.split()))

    def alive(self) -> None:
        """The service works; without this for `watchdog_seconds`, the supervisor kills it.

        Ignored before `ready`: the first one would start the watchdog, and a start that waits would
        end long before TimeoutStartSec=.
        """
        if self.watchdog_seconds is not None and self._ready:
            self._send("WATCHDOG=1")

    def extend(self, seconds: float) -> None:
        """The start or stop goes on; another notification follows within this time."""
        self._send(f"EXTEND_TIMEOUT_USEC={round(seconds * MICROSECONDS)}")

    def stopping(self) -> None:
        """The service begins to stop."""
        if not self._stops:
            self._stops = True
            self._send("STOPPING=1")

    @contextmanager
    def reloading(self) -> Iterator[None]:
        """The service reads its files again; before it is ready, this is part of the start."""
        if not self._ready or self._stops:
            yield
            return
        now = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1_000
        self._send("RELOADING=1", f"MONOTONIC_USEC={now}")
        try:
            yield
        finally:
            self.ready()

    def _send(self, *lines: str) -> None:
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.settimeout(SEND_SECONDS)
                sender.sendto("\n".join(lines).encode(), _place(self._address))
        except (OSError, ValueError) as error:
            if not self._complained:
                self._complained = True
                self._failed(f"cannot notify {self._address!r} (NOTIFY_SOCKET): {error}")


def _place(address: str) -> str:
    """Return the address of a socket. Raises ValueError."""
    if address.startswith("@"):  # it has no file: the kernel's name for it begins with a zero byte
        return "\0" + address[1:]
    if not address.startswith("/"):
        raise ValueError("it is neither a path nor an abstract socket")
    return address


def _watchdog_seconds(environment: Mapping[str, str], pid: int) -> float | None:
    """Return the time of the watchdog, if it is for this process."""
    given = environment.get("WATCHDOG_USEC", "")
    if environment.get("WATCHDOG_PID", str(pid)) != str(pid):
        return None
    return int(given) / MICROSECONDS if given.isdecimal() and int(given) else None
