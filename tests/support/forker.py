"""The process of `tests.support.warm` that imports Moorage once, and forks for each command.

Its argument is a socket, over which each command comes: files, a length, and JSON. It answers with
the number of the new process. It ends when the socket closes.
"""

import gc
import json
import os
import runpy
import socket
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from pkgutil import walk_packages
from typing import Any

MODULES = "moorage.serve.lifecycle", "moorage.store.postgres.engine", "uvicorn.lifespan.off"
PACKAGES = (
    "cli",
    "client",
    "store.sqlite",
    *(f"integrations.{name}" for name in ("ironic", "kubernetes", "metal3", "provisioning")),
)
"""All modules of these are imported, because commands import most of theirs when they run."""

FILES_MAX = 64
"""More than the process that forks has open."""


def modules() -> Iterator[str]:
    """Return the names of all modules of the packages."""
    for package in PACKAGES:
        home = import_module(f"moorage.{package}")
        yield from (one.name for one in walk_packages(home.__path__, f"{home.__name__}."))


def received(door: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """Return the next command and its files; None: there will be no more."""
    head, files, _, _ = socket.recv_fds(door, 4, 3)
    if not head:
        return None
    text = b""
    while len(text) < int.from_bytes(head, "big"):
        text += door.recv(65_536)
    return json.loads(text), files


def forked(door: socket.socket) -> bool:
    """Fork, and return whether this is the new process; answer once its parent has ended."""
    read, write = os.pipe()
    between = os.fork()
    if not between:
        number = os.fork()
        if number:
            os._exit(0 if os.write(write, number.to_bytes(4, "big")) else 1)
        return True
    os.close(write)
    os.waitpid(between, 0)
    with open(read, "rb") as answer:
        door.sendall(answer.read(4))
    return False


def become(command: dict[str, Any], files: list[int]) -> None:
    """Take the files, the environment, the folder and the arguments of a command."""
    os.setsid()
    for number, file in enumerate(files):
        os.dup2(file, number)
    os.closerange(3, FILES_MAX)
    os.environ.clear()
    os.environ.update(command["environment"])
    time.tzset()
    os.chdir(command["directory"])
    sys.argv[1:] = command["words"]


def main() -> None:
    """Fork for each command until the socket closes, and be that command in the fork."""
    gc.disable()
    for name in (*MODULES, *modules()):
        import_module(name)
    gc.freeze()
    gc.enable()
    with socket.socket(fileno=int(sys.argv[1])) as door:
        while wanted := received(door):
            if forked(door):
                become(*wanted)
                break
            for file in wanted[1]:
                os.close(file)
        else:
            return
        door.detach()
    runpy.run_module("moorage", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
