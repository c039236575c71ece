"""Which host names clients may address: a guard against DNS rebinding.

A web page can point a name of its own at this address and let the visitor's browser call it; such
a request carries the page's name in its Host header. Names that are not ours are refused. Addresses
are not: a page that was loaded from an address of ours came from here.
"""

import ipaddress
import re
from functools import lru_cache

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
"""Always ours."""

WILDCARD_ADDRESSES = ("0.0.0.0", "::")
"""Stand for every address of the machine."""

_HOST = re.compile(rb"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::[0-9]{0,5})?")


class Hosts:
    """The allow-list of host names; any port is allowed."""

    def __init__(self, listen_host: str, allowed: tuple[str, ...]) -> None:
        names = {name.lower() for name in (*LOOPBACK_NAMES, listen_host, *allowed)}
        self._any = "*" in names
        self._names = frozenset(names)
        self.allows = lru_cache(maxsize=64)(self._allows)
        """Does a Host header's value name this service? False as well when it is malformed."""

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
