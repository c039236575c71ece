"""The processes for which this one works: a wait must not outlive the shell that asked for it.

If only a shell is killed, its children live on. So a process that waits looks at its parent, and at
older ancestors of its process group: a subshell outlives its script, too. It also looks at the
reader of its output. Polled, because the kernel's signal at a parent's death is only Linux's, comes
when the parent's thread ends, and is lost if the parent was dead before it was asked for.
`client.sh` contains this file, so it imports nothing of Moorage.
"""

from __future__ import annotations

import os
import select
from collections.abc import Sequence
from typing import NamedTuple

LOOK_SECONDS = 1.0
"""How often to look, at least."""

ANCESTORS_MAX = 32

DEAD = ("Z", "X", "x")
"""States of a process that has ended, but whose parent has not asked for its exit code."""


class SeenProcess(NamedTuple):
    """A process, with the time of its start: its number may be used again after its end."""

    pid: int
    began: str | None
    """None: this system does not tell."""


class Starters:
    """The processes with which this one ends.

    Create it early: an ancestor that has ended before is only noticed by its session.
    """

    def __init__(self, pids: Sequence[int] | None = None, output: int | None = None) -> None:
        """Remember the processes as they are now.

        Args:
            pids: all of them must live; none: this process ends with nobody. By default the parent
                and the older ancestors of this process group.
            output: a file descriptor whose reader must live, if it is a pipe; None: no reader.
        """
        self._parent = os.getppid() if pids is None else None
        found = ancestors() if pids is None else pids
        self._seen = [SeenProcess(pid, _began(pid)) for pid in found]
        self._gone = _orphaned() if pids is None else None
        self._output = output

    def gone(self) -> str | None:
        """Return why nobody needs this process any more, for people; None: somebody does."""
        if self._gone is None and self._parent is not None and os.getppid() != self._parent:
            self._gone = ended_text(self._parent)
        if self._gone is None:
            self._gone = next(
                (ended_text(one.pid) for one in self._seen if not is_alive(one)), None
            )
        if self._gone is None and self._output is not None and not _is_read(self._output):
            self._gone = "nobody reads the output any longer"
        return self._gone


def ended_text(pid: int) -> str:
    """Return that a process has ended, for people."""
    return f"process {pid}, which this command works for, has ended"


def _orphaned() -> str | None:
    """Return that the parent had ended before: then the parent is now one of another session.

    Children are of the session of their parent, unless they begin one.
    """
    parent, ours = os.getppid(), os.getsid(0)
    try:
        orphan = parent > 0 and ours != os.getpid() and os.getsid(parent) != ours
    except OSError:  # it has ended just now
        orphan = os.getppid() != parent
    return "the process that started this command has ended" if orphan else None


def ancestors() -> list[int]:
    """Return the parent, and the older ancestors as long as they are of this process group."""
    pid = os.getppid()
    found: list[int] = []
    while pid > 1 and len(found) < ANCESTORS_MAX:
        status = _status(pid)
        in_group = status is not None and int(status[2]) == os.getpgrp()
        if found and not in_group:
            break
        found.append(pid)
        pid = int(status[1]) if status is not None and in_group else 0
    return found


def lineage() -> list[int]:
    """Return all ancestors, from the parent on, as far as the system tells."""
    found: list[int] = []
    pid = os.getppid()
    while pid > 1 and len(found) < ANCESTORS_MAX:
        found.append(pid)
        status = _status(pid)
        pid = 0 if status is None else int(status[1])
    return found


def _status(pid: int) -> list[str] | None:
    """Return what Linux says of a process after its name: state, parent, group and so on."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()
    except OSError:
        return None


def _began(pid: int) -> str | None:
    status = _status(pid)
    return None if status is None else status[19]


def is_alive(one: SeenProcess) -> bool:
    """Return whether a process runs, and is still the same one."""
    status = _status(one.pid)
    if status is not None:
        return status[0] not in DEAD and one.began in (None, status[19])
    try:
        os.kill(one.pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it is another user's
        pass
    return one.began is None


def _is_read(descriptor: int) -> bool:
    """Return whether a write may succeed: the reader of a pipe lives."""
    poll = select.poll()
    poll.register(descriptor, 0)
    return not poll.poll(0)
