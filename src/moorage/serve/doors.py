"""The addresses that the server listens on: sockets of its own, or those that systemd holds.

A passed socket is named after its setting. It counts more than the default of the setting, and a
setting that was chosen must agree with it, if only with the default, so that nobody listens
elsewhere than they believe.
"""

import os
import socket
from collections.abc import Iterator
from typing import NamedTuple

from msgspec.structs import replace

from moorage.config.addresses import Address, address_parse
from moorage.config.settings import Loaded, Settings, check, check_addresses
from moorage.serve.http.connection_limits import end_dead_connections
from moorage.serve.http.hosts import WILDCARD_ADDRESSES
from moorage.systemd.passed_sockets import (
    LISTEN,
    PassedSocketError,
    check_agrees,
    passed_sockets,
)

BOSKOS = "boskos_listen"


class DoorError(Exception):
    """An address cannot be served. The message is one line and says what to change."""


class Door(NamedTuple):
    """A bound address, and the host names that clients may use there besides its own."""

    listener: socket.socket
    address: Address
    hosts: tuple[str, ...]
    """Empty: those of the setting `allowed_hosts`."""

    @property
    def reachable(self) -> Address:
        """An address that this machine can call."""
        if self.address.host not in WILDCARD_ADDRESSES:
            return self.address
        return Address("::1" if ":" in self.address.host else "127.0.0.1", self.address.port)


def doors_of(loaded: Loaded) -> tuple[Settings, list[Door]]:
    """Bind the addresses of the settings; connections are accepted later.

    Returns the settings with the addresses of passed sockets, and the doors: for all clients, and
    for those of Boskos, if they have one.
    Raises DoorError; ConfigError: the settings do not allow the address of a passed socket, or need
    an address that there is not.
    """
    settings = loaded.settings
    try:
        passed = _passed(loaded)
    except PassedSocketError as error:
        raise DoorError(str(error)) from None
    addresses = {name: _address(one) for name, one in passed.items()}
    if addresses:
        settings = replace(settings, **{name: one.text for name, one in addresses.items()})
        check(settings)
    check_addresses(settings)
    return settings, [*_opened(settings, passed)]


def _passed(loaded: Loaded) -> dict[str, socket.socket]:
    """Return the sockets that systemd has passed, by setting. Raises PassedSocketError."""
    names = (LISTEN, BOSKOS)
    found = {}
    for name, those in passed_sockets(os.environ, os.getpid(), names).items():
        if len(those) > 1:
            raise PassedSocketError(
                f"systemd passes {len(those)} sockets for {name}, which is one address: use one"
                " ListenStream="
            )
        if loaded.is_chosen(name):
            check_agrees(name, getattr(loaded.settings, name), those)
        found[name] = those[0]
    return found


def _opened(settings: Settings, passed: dict[str, socket.socket]) -> Iterator[Door]:
    for name in (LISTEN, BOSKOS):
        value = getattr(settings, name)
        if value is None:
            continue
        listener = passed.get(name) or _bound(name, value)
        end_dead_connections(listener)
        host = address_parse(value, name).host
        address = Address(host, listener.getsockname()[1])
        # In a cluster, clients use any name for Boskos, and web pages do not know its address. But
        # an address on loopback must be protected from the browsers of this machine.
        yield Door(listener, address, ("*",) if name == BOSKOS and not address.loopback else ())


def _bound(setting: str, value: str) -> socket.socket:
    """Return a socket that is bound to the address of a setting. Raises DoorError."""
    address = address_parse(value, setting)
    try:
        found = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        family, kind, protocol, _, where = found[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise DoorError(
            f"{setting}: {address.host} is not an address of this machine: {error.strerror}"
        ) from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(where)
    except OSError as error:
        listener.close()
        raise DoorError(
            f"{setting}: cannot serve on {address.host}:{address.port}: {error.strerror}; "
            f"stop the other program, or choose another port with --{setting.replace('_', '-')}"
            f" or MOORAGE_{setting.upper()}"
        ) from None
    return listener


def _address(one: socket.socket) -> Address:
    host, port = one.getsockname()[:2]
    return Address(host, port)
