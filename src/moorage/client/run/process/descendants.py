"""Finds all descendants of a command, in any process group (Linux only).

A process group does not contain all of them: `setsid`, job control and `timeout` create new groups.
When the command dies, its orphans become children of this process.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

PR_SET_CHILD_SUBREAPER = 36
"""Of prctl(2): orphaned descendants become children of this process, not of process 1."""

LINUX = sys.platform.startswith("linux")


class Process(NamedTuple):
    """A live process."""

    pid: int
    group: int


def adopt_orphans() -> bool:
    """Become the parent of every orphaned descendant; return False if that is not possible.

    Not done if there are children already (of a shell that has replaced itself by this process):
    their descendants could not be distinguished from the command's.
    """
    if not (LINUX and os.path.isdir("/proc/self")):
        return False
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return not ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    return False


def reap_orphans(child: int) -> None:
    """Reap all children that have ended, except this one; otherwise they would stay zombies."""
    with suppress(ChildProcessError):
        while True:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended is None or ended.si_pid == child:
                return
            os.waitpid(ended.si_pid, os.WNOHANG)


def descendants() -> list[Process]:
    """Return all live descendants of this process that the system shows."""
    children: dict[int, list[Process]] = {}
    for parent, process in _processes():
        children.setdefault(parent, []).append(process)
    found: list[Process] = []
    rest = [os.getpid()]
    while rest:
        of_one = children.pop(rest.pop(), [])
        found += of_one
        rest += [process.pid for process in of_one]
    return found


def _processes() -> Iterator[tuple[int, Process]]:
    """Yield (id of the parent, process) of each live process."""
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):  # it has just ended
            with open(f"/proc/{name}/stat", "rb") as file:
                # The name is in parentheses and may itself contain parentheses.
                state, parent, group = file.read().rpartition(b")")[2].split()[:3]
            if state not in (b"Z", b"X"):
                yield int(parent), Process(int(name), int(group))
