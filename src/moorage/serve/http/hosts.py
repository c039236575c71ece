"""Checks the Host header: a protection against DNS rebinding.

A web page can point its own host name at this address and make the visitor's browser call it; such
a request has the page's name in its Host header. Unknown names are refused. IP addresses are
allowed: a page with this server's address as origin was loaded from this server.
"""

import ipaddress
import re
from functools import lru_cache

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
"""Always allowed."""

WILDCARD_ADDRESSES = ("0.0.0.0", "::")
"""Mean every address of the machine."""

_HOST = re.compile(rb"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::[0-9]{0,5})?")


class Hosts:
    """The allow-list of host names; any port is allowed."""

    def __init__(self, listen_host: str, allowed: tuple[str, ...]) -> None:
        names = {name.lower() for name in (*LOOPBACK_NAMES, listen_host, *allowed)}
        self._any = "*" in names
        self._names = frozenset(names)
        self.allows = lru_cache(maxsize=64)(self._allows)
        """Returns whether the value of a Host header is allowed; False if it is malformed."""

    def _allows(self, host: bytes) -> bool:
        found = _HOST.fullmatch(host)
        if found is None:
            return False
        name = found[1].decode("ascii").lower().strip("[]").rstrip(".")
        return self._any or name in self._names or _is_address(name)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
