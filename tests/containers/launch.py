"""Becomes a process in another root: launch.py SPECIFICATION, which is a JSON object.

It runs in mount and process namespaces of its own (`unshare`), so its mounts end with it. Standard
library only. The members of the specification are those of `Start`.
"""

import ctypes
import json
import os
import signal
import subprocess
import sys
from typing import TypedDict

PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS = 1, 38
DEVICES = ("full", "null", "random", "urandom", "zero")


class Start(TypedDict):
    """What to start."""

    root: str
    binds: list[tuple[str, str]]
    """Paths outside and inside; what is inside exists."""
    read_only: bool
    """Whether the root is mounted read-only. What is bound into it is not."""
    user: int
    """Also the group."""
    directory: str
    environment: dict[str, str]
    words: list[str]


def main(start: Start) -> None:
    """Mount, change the root and the user, and become the command."""
    root = start["root"]
    _mount("--bind", root, root)
    _mount("-t", "proc", "proc", f"{root}/proc")
    _mount("-t", "tmpfs", "-o", "mode=755", "dev", f"{root}/dev")
    for name in DEVICES:
        with open(f"{root}/dev/{name}", "w"):
            pass
        _mount("--bind", f"/dev/{name}", f"{root}/dev/{name}")
    for outside, inside in start["binds"]:
        _mount("--bind", outside, root + inside)
    if start["read_only"]:
        _mount("-o", "remount,bind,ro", root)
    os.chroot(root)
    os.chdir(start["directory"])
    os.umask(0o022)
    if start["user"]:
        os.setgroups([])
        os.setgid(start["user"])
        os.setuid(start["user"])
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    libc.prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    words = start["words"]
    try:
        os.execvpe(words[0], words, start["environment"])
    except OSError as error:
        sys.exit(f"launch: {words[0]}: {error.strerror}")


def _mount(*words: str) -> None:
    subprocess.run(["mount", *words], check=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
