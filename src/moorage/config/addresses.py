"""Addresses and networks in settings."""

import ipaddress
from typing import NamedTuple

from moorage.config import ConfigError


class Address(NamedTuple):
    """A host and a port to listen on."""

    host: str
    port: int

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach it."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def text(self) -> str:
        """The address as `HOST:PORT`, with an IPv6 host in brackets."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    def url(self, scheme: str) -> str:
        """Return the address as the beginning of a URL."""
        return f"{scheme}://{self.text}"


def address_parse(text: str, setting: str = "listen") -> Address:
    """Split `HOST:PORT`, the value of a setting, with an IPv6 host in brackets.

    Raises:
        ConfigError: it is not such an address.
    """
    host, colon, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        colon = ""
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 0xFFFF:
        raise ConfigError(f"{setting}: {text!r} is not HOST:PORT (for example 127.0.0.1:8778)")
    return Address(host, int(port))


Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def networks_parse(texts: tuple[str, ...]) -> tuple[Network, ...]:
    """Parse the setting `trusted_proxies`: networks such as `10.0.0.0/8`, or single addresses.

    Raises:
        ConfigError: one of them is not a network.
    """
    found = []
    for text in texts:
        try:
            found.append(ipaddress.ip_network(text))
        except ValueError as error:
            raise ConfigError(f"trusted_proxies: {text!r} is not a network: {error}") from None
    return tuple(found)
