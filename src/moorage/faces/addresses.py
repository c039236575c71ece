"""Addresses of clients: what is one, and which of them are the same client's."""

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

from moorage.faces.web import Scope

PREFIX = 64
"""Bits of an IPv6 address that tell one client from another: it chooses the others itself."""

IpAddress = IPv4Address | IPv6Address


def address_of(host: str) -> IpAddress | None:
    """Return an address, an IPv4 one as such even on an IPv6 socket; None: it is none."""
    try:
        address = ip_address(host)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def source_of(address: IpAddress) -> str:
    """Return a name for all addresses that one client has."""
    if address.version == 6:
        return str(IPv6Network((int(address), PREFIX), strict=False))
    return str(address)


def client_of(scope: Scope) -> str:
    """Return where a request comes from, as trusted proxies tell it; empty: nobody knows."""
    client: tuple[str, int] | None = scope.get("client")
    return client[0] if client else ""
