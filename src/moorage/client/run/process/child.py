"""The command that runs with a lease, in a separate process group."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from moorage.client.run.clock import elapsed
from moorage.client.run.process.descendants import LINUX, adopt_orphans, descendants, reap_orphans
from moorage.client.run.terminal import STDERR, STDOUT, Terminal

if TYPE_CHECKING:
    from moorage.client.run.process.output import Output

PR_SET_PDEATHSIG = 1
"""Of prctl(2): sets the signal that a process gets when its parent dies."""

STOP_SECONDS = 1.0
"""How long a command may take to stop after SIGTSTP; then it gets SIGSTOP."""

LOOK_SECONDS = 0.02


class CommandError(Exception):
    """The command cannot be run; `code` is the exit code that shells use for it."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def check_command(name: str) -> None:
    """Look for a command in the same way as `Child`. Raises CommandError: 127 or 126."""
    folders = [""] if "/" in name else os.get_exec_path()
    there = [path for path in (os.path.join(it, name) for it in folders) if os.path.exists(path)]
    if any(os.path.isfile(path) and os.access(path, os.X_OK) for path in there):
        return
    if not there:
        raise CommandError(127, f"{name}: no such command")
    why = "is a directory" if os.path.isdir(there[0]) else "is not executable"
    raise CommandError(126, f"{name}: {why}")


class Child:
    """A running command and all processes that it has started.

    After it has ended, `killed_by` is the signal that killed it (None: it exited), and
    `had_terminal` whether its group had the terminal at that time.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        if_we_die: int | None,
        terminal: Terminal,
        output: Output | None = None,
    ) -> None:
        """Start the command. It inherits file descriptors and ignored signals.

        Args:
            command: and its arguments.
            environment: all of its variables.
            if_we_die: the signal that it gets (on Linux) if this process is killed; None: none.
            terminal: given to the command if no other process can need it.
            output: what it writes into; None: what this process writes into.

        Raises:
            CommandError: it cannot be run.
        """
        self.code: int | None = None
        self.killed_by: int | None = None
        self.had_terminal = False
        self._terminal = terminal
        self._stopped: int | None = None
        self._reported_stopped = False
        self._adopts = if_we_die is not None and adopt_orphans()
        given = terminal if terminal.wholly_ours else None
        try:
            self._process = subprocess.Popen(
                [*command],
                env=dict(environment),
                close_fds=False,
                stdout=None if output is None else output.of(STDOUT),
                stderr=None if output is None else output.of(STDERR),
                preexec_fn=_prepare(given, if_we_die),  # noqa: PLW1509 it only makes system calls
            )
        except FileNotFoundError:
            raise CommandError(127, f"{command[0]}: no such command") from None
        except (OSError, ValueError) as error:
            raise CommandError(126, f"{command[0]}: {error}") from None
        if output is not None:
            output.start()

    @property
    def group(self) -> int:
        """Its process group."""
        return self._process.pid

    @property
    def lives(self) -> bool:
        """Whether any of its processes is left; they may outlive the command itself."""
        with suppress(ChildProcessError):  # orphans of the group may have become our children
            while self.code is not None and os.waitpid(-self.group, os.WNOHANG)[0]:
                pass
        self._reap()
        try:
            os.killpg(self.group, 0)
        except ProcessLookupError:
            return bool(self._outside())
        except PermissionError:
            pass
        return True

    def end(self, number: int) -> bool:
        """Send a signal to all its processes; return False if the group is another user's."""
        permitted = self.signal(number)
        for pid in self._outside():
            with suppress(OSError):
                os.kill(pid, number)
                os.kill(pid, signal.SIGCONT)
        return permitted

    def _outside(self) -> list[int]:
        """Return its descendants in other process groups."""
        if not self._adopts:
            return []
        return [process.pid for process in descendants() if process.group != self.group]

    def _reap(self) -> None:
        if self._adopts or os.getpid() == 1:  # the first process of a container
            reap_orphans(self.group)

    def signal(self, number: int) -> bool:
        """Send a signal to its process group; return False if the group is another user's."""
        try:
            os.killpg(self.group, number)
        except ProcessLookupError:
            pass  # it has ended
        except PermissionError:
            return False
        if number == signal.SIGCONT:
            self._stopped = None
        return True

    def tell(self, number: int) -> None:
        """Forward a signal; if the command is stopped, continue it so that it can react."""
        self.signal(number)
        if self._stopped is not None:
            self.signal(signal.SIGCONT)

    def look(self) -> int | None:
        """Return its exit code as in shells (128+n for signal n); None if it is running."""
        self._reap()
        while self.code is None:
            pid, status = os.waitpid(self.group, os.WNOHANG | os.WUNTRACED)
            if pid == 0:
                return None
            if os.WIFSTOPPED(status):
                self._stopped, self._reported_stopped = os.WSTOPSIG(status), False
                continue
            code = os.waitstatus_to_exitcode(status)
            self._process.returncode = code
            self.had_terminal = self._terminal.foreground == self.group
            if self.had_terminal:
                self._terminal.give(os.getpgrp())
            self.killed_by = -code if code < 0 else None
            self.code = 128 - code if code < 0 else code
        return self.code

    def stopped(self) -> int | None:
        """Return the signal that has stopped it, once per stop; None if there was no new stop."""
        number = None if self._reported_stopped else self._stopped
        self._reported_stopped = True
        return number

    def suspend(self) -> None:
        """Stop its process group, including processes that ignore SIGTSTP."""
        self.signal(signal.SIGTSTP)
        self._await_stop()
        if self.code is None:
            self.signal(signal.SIGSTOP)
            self._await_stop()
        self._reported_stopped = True

    def _await_stop(self) -> None:
        """Wait until it is stopped, with a limit; its descendants may take a moment longer."""
        pause, until = threading.Event(), elapsed() + STOP_SECONDS
        while self.look() is None and self._stopped is None and elapsed() < until:
            pause.wait(LOOK_SECONDS)
        pause.wait(LOOK_SECONDS)


def _prepare(terminal: Terminal | None, if_we_die: int | None) -> Callable[[], None]:
    """Return the function that the new process calls before it executes the command."""
    tie = None if if_we_die is None else _tie(if_we_die)
    parent = os.getpid()

    def prepare() -> None:
        os.setpgid(0, 0)
        if terminal is not None:
            terminal.give(os.getpid())
        if tie is not None:
            tie()
            if os.getppid() != parent:
                os._exit(128 + signal.SIGKILL)

    return prepare


def _tie(number: int) -> Callable[[], None] | None:
    """Return a function that requests a signal on the parent's death; None if not supported."""
    if not LINUX:
        return None
    prctl = ctypes.CDLL(None).prctl

    def tie() -> None:
        prctl(PR_SET_PDEATHSIG, number, 0, 0, 0)

    return tie
