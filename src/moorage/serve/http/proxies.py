"""Takes the client's address, scheme and path prefix from the headers of trusted proxies.

Anyone can send these headers, so only proxies in the setting `trusted_proxies` are trusted. Of the
addresses in X-Forwarded-For, the last one that is not a trusted proxy's counts: the client may have
forged those before it. Of several schemes or prefixes, the last one counts.
"""

from functools import lru_cache
from itertools import islice

from moorage.config.addresses import Network
from moorage.config.prefixes import prefix_of
from moorage.faces.addresses import address_of
from moorage.faces.web import Scope

FORWARDED_FOR = b"x-forwarded-for"
FORWARDED_PROTO = b"x-forwarded-proto"
FORWARDED_PREFIX = b"x-forwarded-prefix"
SCHEMES = frozenset({"http", "https"})

HOPS_MAX = 32
"""Addresses that are examined: a client can send thousands of addresses of trusted proxies."""


class Proxies:
    """The trusted proxies."""

    def __init__(self, networks: tuple[Network, ...]) -> None:
        self._networks = networks
        self.trusts = lru_cache(maxsize=4_096)(self._trusts)
        """Returns whether this is the address of a trusted proxy."""

    def _trusts(self, host: str) -> bool:
        address = address_of(host) if self._networks else None
        return address is not None and any(address in network for network in self._networks)

    def believe(self, scope: Scope) -> None:
        """Set `client` and `scheme` of a request from a trusted proxy to those of its client.

        `root_path` becomes the prefix that the client has used, if it is one.
        """
        forwarded: list[bytes] = []
        schemes: list[bytes] = []
        for name, value in scope["headers"]:
            if name == FORWARDED_FOR:
                forwarded += value.split(b",")
            elif name == FORWARDED_PROTO:
                schemes += value.split(b",")
            elif name == FORWARDED_PREFIX:
                prefix = prefix_of(value.rpartition(b",")[2].strip(b" \t").decode("latin-1"))
                scope["root_path"] = prefix or ""
        client = self._client(forwarded)
        if client is not None:
            scope["client"] = (client, 0)
        if schemes:
            scheme = schemes[-1].strip().lower().decode("latin-1")
            if scheme in SCHEMES:
                scope["scheme"] = scheme

    def _client(self, forwarded: list[bytes]) -> str | None:
        client = None
        for raw in islice(reversed(forwarded), HOPS_MAX):
            # A zone (fe80::1%eth0) has no meaning on other machines, and may be any text.
            text = _without_port(raw.strip().decode("latin-1"))
            address = None if "%" in text else address_of(text)
            if address is None:
                break
            client = str(address)
            if not self.trusts(client):
                break
        return client


def _without_port(text: str) -> str:
    """Remove the port that some proxies add: `192.0.2.1:4711`, `[2001:db8::1]:4711`."""
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0] if text.count(":") == 1 else text
