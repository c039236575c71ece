"""Sockets that listen on an address of the command line."""

from socket import SO_REUSEADDR, SOCK_STREAM, SOL_SOCKET, getaddrinfo, socket

from moorage.client.transport import shown_url

BACKLOG = 1_024
PORT_MAX = 65_535
"""`getaddrinfo` takes larger ones, and counts from 0 again."""


class ListenError(Exception):
    """There is no socket to listen on; the message says why."""


def bound(address: str) -> list[socket]:
    """Return sockets that listen on HOST:PORT. Raises ListenError."""
    host, _, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not (port.isdecimal() and host and int(port) <= PORT_MAX):
        raise ListenError(f"{shown_url(address)!r} is not HOST:PORT")
    made = []
    try:
        for family, kind, _, _, place in getaddrinfo(host, int(port), type=SOCK_STREAM):
            one = socket(family, kind)
            made.append(one)
            one.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
            one.bind(place)
            one.listen(BACKLOG)
    except OSError as error:
        for one in made:
            one.close()
        raise ListenError(
            f"cannot listen on {shown_url(address)}: {error.strerror or error}"
        ) from error
    return made
