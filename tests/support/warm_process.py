"""The process that `warm` forks others from; its argument is the socket that gives the orders."""

import atexit
import gc
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress

import moorage
from moorage.__main__ import main
from tests.support.warm import ORDER_BYTES_MAX


def _import_all() -> None:
    """Import what commands and servers import when they run."""
    for module in pkgutil.walk_packages(moorage.__path__, "moorage."):
        if module.name != "moorage.__main__":
            with suppress(ModuleNotFoundError):  # of an extra that is not installed
                importlib.import_module(module.name)


def _take_orders(control: socket.socket) -> None:
    """Fork for each order until nobody can give one; return only in the forked processes."""
    running: dict[int, tuple[int, int]] = {}  # the descriptor of a process: its pid, its status
    while True:
        for one in select.select([control.fileno(), *running], [], [])[0]:
            if one != control.fileno():
                pid, status = running.pop(one)
                code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                _tell(status, b"c", code)
                os.close(status)
                os.close(one)
                continue
            order, given, _, _ = socket.recv_fds(control, ORDER_BYTES_MAX, 3)
            if not order:
                os._exit(0)
            pid = os.fork()
            if not pid:
                control.detach()  # closed with all others
                _become(order, given)
                return
            stdout, stderr, status = given
            os.close(stdout)
            os.close(stderr)
            running[os.pidfd_open(pid)] = (pid, status)


def _tell(status: int, what: bytes, number: int) -> None:
    """Write a pid (p) or an exit code (c) into a status pipe, whose reader may be gone."""
    with suppress(BrokenPipeError):
        os.write(status, what + number.to_bytes(4, "big", signed=True))


def _become(order: bytes, given: Sequence[int]) -> None:
    """Make this forked process the one that was ordered, and tell its number."""
    arguments, directory, variables, session = json.loads(order)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if session:
        os.setsid()
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(variables)
    time.tzset()
    sys.argv[1:] = arguments
    stdout, stderr, status = given
    os.dup2(stdout, 1)
    os.dup2(stderr, 2)
    _tell(status, b"p", os.getpid())
    os.closerange(3, max(map(int, os.listdir("/proc/self/fd"))) + 1)


def _end(end: SystemExit) -> None:
    """End the process as the interpreter does, but without taking all modules apart.

    That takes longer than most commands, because it copies the memory that is shared with the warm
    process. Return if there is more to do than that.
    """
    if threading.active_count() == 1 and isinstance(end.code, int | None):
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(end.code or 0)


if __name__ == "__main__":
    # Ctrl-C is for the tests, which end what they have started, and then this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.close(os.pidfd_open(os.getpid()))  # fail before anything is forked where there is none
    _import_all()
    gc.freeze()  # so that no collection copies the memory that is shared with the warm process
    _take_orders(socket.socket(fileno=int(sys.argv[1])))
    try:
        main()
    except SystemExit as end:
        _end(end)
        raise
