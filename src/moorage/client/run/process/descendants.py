"""What a command has started, wherever that has gone: Linux tells, and gives us its orphans.

A process group does not hold all of it: `setsid` and job control leave it, and so does `timeout`,
which makes a group of its own. If the command dies, what it leaves behind becomes our child.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

PR_SET_CHILD_SUBREAPER = 36
"""Of prctl(2): whose parent dies becomes a child of ours, and not of the first process."""

LINUX = sys.platform.startswith("linux")


class Process(NamedTuple):
    """One that lives."""

    pid: int
    group: int


def adopt_orphans() -> bool:
    """Become the parent of every descendant whose own parent dies; False: that is not possible.

    Nor is it done if there are children already, as those of a shell that became us: what is theirs
    could not be told from what is the command's.
    """
    if not (LINUX and os.path.isdir("/proc/self")):
        return False
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return not ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    return False


def reap_orphans(child: int) -> None:
    """Forget all children that have ended, but this one: they would stay for as long as we do."""
    with suppress(ChildProcessError):
        while True:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended is None or ended.si_pid == child:
                return
            os.waitpid(ended.si_pid, os.WNOHANG)


def descendants() -> list[Process]:
    """Return all processes below us that live, as far as the system tells."""
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
    """Yield each process that lives, after its parent."""
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):  # it has just ended
            with open(f"/proc/{name}/stat", "rb") as file:
                # Its name stands in parentheses, and may hold anything, also these.
                state, parent, group = file.read().rpartition(b")")[2].split()[:3]
            if state not in (b"Z", b"X"):
                yield int(parent), Process(int(name), int(group))
