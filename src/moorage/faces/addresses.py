"""Client addresses: parsing, and grouping those that belong to one client."""

from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

from moorage.faces.web import Scope

PREFIX = 64
"""Bits of an IPv6 address that identify a client: it can choose the remaining bits itself."""

IpAddress = IPv4Address | IPv6Address


@lru_cache(maxsize=4_096)
def address_of(host: str) -> IpAddress | None:
    """Parse an address, IPv4-mapped IPv6 as IPv4; None if `host` is not an address."""
    try:
        address = ip_address(host)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def source_of(address: IpAddress) -> str:
    """Return one name for all addresses that one client can use."""
    if address.version == 6:
        return str(IPv6Network((int(address), PREFIX), strict=False))
    return str(address)


@lru_cache(maxsize=4_096)
def is_loopback(host: str) -> bool:
    """Whether an address is of this host itself; an unknown one is not."""
    address = address_of(host)
    return address is not None and address.is_loopback


def client_of(scope: Scope) -> str:
    """Return a request's source address, as reported by trusted proxies; empty if unknown."""
    client: tuple[str, int] | None = scope.get("client")
    return client[0] if client else ""
