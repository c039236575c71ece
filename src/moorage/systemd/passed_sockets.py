"""The sockets that systemd holds and passes: `sd_listen_fds(3)`.

They stay while a service is started again, so that no client is refused. Each has a name, that of
the option that it replaces (`FileDescriptorName=`).
"""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Mapping, Sequence

FIRST = 3
"""The descriptor of the first one."""

LISTEN = "listen"
"""The name of the socket that clients of a service connect to."""


class PassedSocketError(Exception):
    """A passed socket cannot be used; the message is one line and says what to change."""


def passed_sockets(
    environment: Mapping[str, str], pid: int, names: Sequence[str] = (LISTEN,)
) -> dict[str, list[socket.socket]]:
    """Return what was passed to this process, by name; empty: nothing.

    If all have one name that is not known, as that of their unit is, they are for `LISTEN`.

    Args:
        environment: with LISTEN_PID, LISTEN_FDS and LISTEN_FDNAMES.
        pid: of this process.
        names: those that this service knows.

    Raises:
        PassedSocketError: a name is not known, or this is no socket that listens for TCP.
    """
    if environment.get("LISTEN_PID") != str(pid):
        return {}
    given = environment.get("LISTEN_FDS", "0")
    numbers = range(FIRST, FIRST + (int(given) if given.isdecimal() else 0))
    told = environment.get("LISTEN_FDNAMES", "").split(":")
    found: dict[str, list[int]] = {}
    for place, number in enumerate(numbers):
        found.setdefault(told[min(place, len(told) - 1)], []).append(number)
    if len(found) == 1 and not found.keys() & {*names}:
        found = {LISTEN: [*numbers]}
    for name in found:
        if name not in names:
            raise PassedSocketError(
                f"systemd passes a socket named {name!r}: set FileDescriptorName= of its unit to"
                f" {' or '.join(names)}"
            )
    return {name: [_listening(number) for number in those] for name, those in found.items()}


def check_agrees(option: str, address: str, passed: Sequence[socket.socket]) -> None:
    """Check that none of the passed sockets contradicts an address that was chosen.

    Args:
        option: that has chosen it, for the message.
        address: HOST:PORT.
        passed: for what the option says.

    Raises:
        PassedSocketError: none of them listens there.
    """
    host, _, port = address.rpartition(":")
    try:
        wanted = {
            _place(entry[4])
            for entry in socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
        }
    except OSError:
        wanted = set()
    if not any(_place(one.getsockname()) in wanted for one in passed):
        there = " and ".join(shown(one) for one in passed)
        raise PassedSocketError(
            f"{option} is {address}, but systemd passes a socket on {there}: leave {option} out, or"
            " change ListenStream= of the socket unit"
        )


def shown(one: socket.socket) -> str:
    """Return the address of a socket as HOST:PORT."""
    host, port = one.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _listening(number: int) -> socket.socket:
    """Return the socket with this descriptor. Raises PassedSocketError."""
    try:
        os.set_inheritable(number, False)
        one = socket.socket(fileno=number)
    except OSError as error:
        raise PassedSocketError(f"descriptor {number} is no socket: {error.strerror}") from None
    if one.family not in (socket.AF_INET, socket.AF_INET6) or one.type != socket.SOCK_STREAM:
        raise PassedSocketError(
            "systemd passes a socket that is not TCP: ListenStream= must be a port or ADDRESS:PORT"
        )
    if not one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        raise PassedSocketError("systemd passes a connection: the socket unit must have Accept=no")
    return one


def _place(name: tuple[object, ...]) -> tuple[str, object]:
    """Return where a socket listens, so that two of them can be compared."""
    host = ipaddress.ip_address(str(name[0]).partition("%")[0])
    return ("*" if host.is_unspecified else str(host), name[1])
