"""The command that runs with a lease: in a process group of its own, with the terminal if any."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

PR_SET_PDEATHSIG = 1
"""Of prctl(2): the signal that a process gets when its parent has died."""

STDIN = 0


class CommandError(Exception):
    """The command cannot be run; `code` is the exit code that shells use for it."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def check_command(name: str) -> None:
    """Look for a command where `Child` will. Raises CommandError: 127 or 126, as in shells."""
    folders = [""] if "/" in name else os.get_exec_path()
    there = [path for path in (os.path.join(it, name) for it in folders) if os.path.exists(path)]
    if any(os.path.isfile(path) and os.access(path, os.X_OK) for path in there):
        return
    if not there:
        raise CommandError(127, f"{name}: no such command")
    why = "is a directory" if os.path.isdir(there[0]) else "is not executable"
    raise CommandError(126, f"{name}: {why}")


class Child:
    """A running command and everything that it started in its process group.

    When it has ended, `killed_by` is the signal that killed it, None: it ended by itself; and
    `had_terminal` tells whether it had the terminal then.
    """

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], if_we_die: int | None
    ) -> None:
        """Start it. File descriptors and ignored signals are handed on as they are.

        Args:
            command: and its arguments.
            environment: all of its variables.
            if_we_die: the signal that it gets (on Linux) should we be killed; None: none.

        Raises:
            CommandError: it cannot be run.
        """
        self.code: int | None = None
        self.killed_by: int | None = None
        self.had_terminal = False
        self._terminal = _in_foreground()
        try:
            self._process = subprocess.Popen(
                [*command],
                env=dict(environment),
                close_fds=False,
                preexec_fn=_prepare(self._terminal, if_we_die),  # noqa: PLW1509 it only makes system calls
            )
        except FileNotFoundError:
            raise CommandError(127, f"{command[0]}: no such command") from None
        except (OSError, ValueError) as error:
            raise CommandError(126, f"{command[0]}: {error}") from None

    def signal(self, number: int) -> None:
        """Send a signal to its process group, unless it has ended."""
        if self.code is not None:
            return
        with suppress(ProcessLookupError):  # it has ended
            os.killpg(self._process.pid, number)

    def look(self) -> int | None:
        """Return its exit code as shells tell it (128+n for a signal); None: it runs."""
        while self.code is None:
            pid, status = os.waitpid(self._process.pid, os.WNOHANG | os.WUNTRACED)
            if pid == 0:
                return None
            if os.WIFSTOPPED(status):
                self._stop_too()
                continue
            code = os.waitstatus_to_exitcode(status)
            self._process.returncode = code
            self.code = 128 - code if code < 0 else code
            self.killed_by = -code if code < 0 else None
            self.had_terminal = self._terminal
            self._take_terminal()
        return self.code

    def suspend(self) -> None:
        """Stop its process group, as we are about to stop."""
        self.signal(signal.SIGTSTP)

    def resume(self) -> None:
        """Go on, with the terminal if we have it: somebody told us to."""
        if self.code is None and _in_foreground():
            _give_terminal(self._process.pid)
            self._terminal = True
        self.signal(signal.SIGCONT)

    def _stop_too(self) -> None:
        """It was stopped at the terminal: give that back and stop, so that the shell goes on."""
        if self._terminal:
            self._take_terminal()
            os.kill(os.getpid(), signal.SIGSTOP)

    def _take_terminal(self) -> None:
        if self._terminal:
            _give_terminal(os.getpgrp())
            self._terminal = False


def _in_foreground() -> bool:
    """Do we own the terminal at standard input?"""
    try:
        return os.isatty(STDIN) and os.tcgetpgrp(STDIN) == os.getpgrp()
    except OSError:
        return False


def _give_terminal(group: int) -> None:
    """Put a group into the foreground; the kernel would stop us for that if we were not in it."""
    before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    try:
        with suppress(OSError):  # the terminal has gone, or the group has ended
            os.tcsetpgrp(STDIN, group)
    finally:
        signal.signal(signal.SIGTTOU, before)


def _prepare(terminal: bool, if_we_die: int | None) -> Callable[[], None]:
    """Return what the new process does before it becomes the command."""
    tie = None if if_we_die is None else _tie(if_we_die)
    parent = os.getpid()

    def prepare() -> None:
        os.setpgid(0, 0)
        if terminal:
            _give_terminal(os.getpid())
        if tie is not None:
            tie()
            if os.getppid() != parent:
                os._exit(128 + signal.SIGKILL)

    return prepare


def _tie(number: int) -> Callable[[], None] | None:
    """Return what makes a process get a signal when its parent dies; None: not on this system."""
    if not sys.platform.startswith("linux"):
        return None
    prctl = ctypes.CDLL(None).prctl

    def tie() -> None:
        prctl(PR_SET_PDEATHSIG, number, 0, 0, 0)

    return tie
