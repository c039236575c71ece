"""Ends processes that a test has started when the test itself is gone, for any reason."""

import select
import subprocess

SCRIPT = 'read -r _; kill -s "$1" -- "$2"; kill -s CONT -- "$2"'
"""The read ends when the other end of the pipe closes: the kernel closes it for a dead process."""


class Guard:
    """A shell that waits for the end of this process, then signals another process.

    PR_SET_PDEATHSIG does not serve: the kernel sends that signal when the thread ends that started
    the process, which may be long before this process ends.
    """

    def __init__(self, pid: int, signal: str = "TERM", *, group: bool = False) -> None:
        """Guard a process, or with `group` its whole process group."""
        target = f"-{pid}" if group else str(pid)
        self._shell = subprocess.Popen(
            ["sh", "-c", SCRIPT, "sh", signal, target],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def close(self) -> None:
        """Stop guarding. Call it before the process is waited for: its number is free then."""
        self._shell.kill()
        self._shell.communicate()


def ended(process: int, seconds: float | None) -> bool:
    """Wait for the end of a process (of `pidfd_open`), child or not; return whether it ended.

    `seconds` None waits without a limit.
    """
    return bool(select.select([process], [], [], seconds)[0])
