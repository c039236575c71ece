"""What trusted proxies tell of the clients behind them: the address and the scheme.

Anybody can send these headers, so only those of the setting `trusted_proxies` are believed. Of
several addresses in X-Forwarded-For the last that is not a trusted proxy's counts: what stands
before it was written by the client.
"""

from functools import lru_cache
from itertools import islice

from moorage.config.addresses import Network
from moorage.faces.addresses import address_of
from moorage.faces.web import Scope

FORWARDED_FOR = b"x-forwarded-for"
FORWARDED_PROTO = b"x-forwarded-proto"
SCHEMES = frozenset({"http", "https"})

HOPS_MAX = 32
"""Addresses that are looked at: a client can write thousands of those of trusted proxies."""


class Proxies:
    """The proxies that are believed."""

    def __init__(self, networks: tuple[Network, ...]) -> None:
        self._networks = networks
        self.trusts = lru_cache(maxsize=4_096)(self._trusts)
        """Is this the address of a trusted proxy?"""

    def _trusts(self, host: str) -> bool:
        address = address_of(host) if self._networks else None
        return address is not None and any(address in network for network in self._networks)

    def believe(self, scope: Scope) -> None:
        """Let a request that a trusted proxy sent be the client's: `client` and `scheme`."""
        forwarded: list[bytes] = []
        schemes: list[bytes] = []
        for name, value in scope["headers"]:
            if name == FORWARDED_FOR:
                forwarded += value.split(b",")
            elif name == FORWARDED_PROTO:
                schemes += value.split(b",")
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
            # A zone (fe80::1%eth0) means nothing on other machines, and could be any text.
            text = _without_port(raw.strip().decode("latin-1"))
            address = None if "%" in text else address_of(text)
            if address is None:
                break
            client = str(address)
            if not self.trusts(client):
                break
        return client


def _without_port(text: str) -> str:
    """Some proxies write `192.0.2.1:4711` and `[2001:db8::1]:4711`."""
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0] if text.count(":") == 1 else text
