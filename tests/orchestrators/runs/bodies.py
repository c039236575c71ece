"""What runs do with their units.

`how` is `leased`; `bare`, without a lease; `busy`, with an event loop that is blocked; or
`unhandled`, with the signal to end handled as if nobody had a handler.

Standard library only, apart from the lease that is handed in.
"""

import asyncio
import os
import signal
import socket
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

Lease = Callable[..., AbstractContextManager[Any]]


def work(gate: str) -> None:
    """Tell the test that this run has begun; return when the test lets it go on."""
    host, port = gate.rsplit(":", 1)
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(f"{os.getpid()}\n".encode())
        connection.recv(1)


def installed(lease: Lease, pool: str, how: str, gate: str) -> None:
    """Work with a unit, or, as a control, without."""
    with nullcontext() if how == "bare" else lease(pool):
        if how == "unhandled":
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_DFL)
        if how == "busy":
            asyncio.run(blocking(gate))
        else:
            work(gate)


async def blocking(gate: str) -> None:
    """Block the event loop while the lease is held."""
    work(gate)


def tried_again(lease: Lease, pool: str, how: str, gate: str, tries: int) -> None:
    """Give up in line on the first try; wait on the next one, when the test lets it begin.

    `how` is `keyed`, as the recipes do it, or `unkeyed`, as a control.
    """
    options: dict[str, object] = {} if how == "keyed" else {"key": None}
    if tries == 1:
        options["wait"] = "1s"
    else:
        work(gate)
    with lease(pool, **options):
        work(gate)
