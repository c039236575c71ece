"""Runs `moorage` as a process that ends with its parent, even if that is killed.

Usage: `python -m demo.server_process PARENT_PID serve ...`
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    """Bind this process to its parent, then become `moorage`."""
    parent = int(sys.argv.pop(1))
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:  # it has died before
        sys.exit(1)
    os.execv(sys.executable, [sys.executable, "-m", "moorage", *sys.argv[1:]])


if __name__ == "__main__":
    main()
