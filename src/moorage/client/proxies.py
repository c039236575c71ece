"""The proxy of the environment through which a server is asked: exactly the one that curl uses.

The rules are those of curl 7.88 (`lib/url.c`, `lib/noproxy.c`): a proxy gets the requests with
their tokens and passwords, so none may be used that other tools would not use. Only proxies that
speak HTTP can be used. `client.sh` contains this file, so it imports nothing of Moorage.
"""

from __future__ import annotations

import base64
import re
import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

PROXY_PORT = 1080
"""The port of a proxy whose address has none, as in curl."""

PROXY_PASSWORD = "a user and a password in its variable, as in http://USER:PASSWORD@HOST:PORT"
ANY = "*"
BITS = {socket.AF_INET: 32, socket.AF_INET6: 128}


class Proxy(NamedTuple):
    """A proxy that speaks HTTP, and what to tell it."""

    host: str
    port: int
    headers: dict[str, str]
    """With its user and password; they go to nobody else."""

    @property
    def shown(self) -> str:
        """Its address for people."""
        return f"the proxy {bracketed(self.host)}:{self.port}"


def proxy_for(scheme: str, host: str, environ: Mapping[str, str]) -> Proxy | None:
    """Return the proxy for a server; None: it is asked directly.

    Args:
        scheme: http or https.
        host: of the server, without brackets.
        environ: the variables.

    Raises ValueError: the proxy cannot be used; the message does not show its password.
    """
    name = _variable(scheme, environ)
    if name is None or _exempt(host, environ.get("no_proxy") or environ.get("NO_PROXY") or ""):
        return None
    return _parsed(environ[name], name, host)


def bracketed(host: str) -> str:
    """Return a host as it stands in an address."""
    return f"[{host}]" if ":" in host else host


def _variable(scheme: str, environ: Mapping[str, str]) -> str | None:
    """Return the variable that names the proxy; an empty one counts as none.

    Not HTTP_PROXY: callers of a CGI program could set it, with the header `Proxy`.
    """
    own = f"{scheme}_proxy"
    names = (own, *(() if scheme == "http" else (own.upper(),)), "all_proxy", "ALL_PROXY")
    return next((name for name in names if environ.get(name)), None)


def _exempt(host: str, listed: str) -> bool:
    """Return whether `no_proxy` has a host: by its name, a domain of it, its address or network."""
    if listed == ANY:
        return True
    name = _canonical(host)
    words = [word for word in re.split("[ \t,]+", listed) if word]
    for family in (socket.AF_INET, socket.AF_INET6):
        if (packed := _packed(family, name)) is not None:
            return any(_in_network(packed, word, family) for word in words)
    return any(_in_domain(name.lower(), word.lower()) for word in words)


def _canonical(host: str) -> str:
    """Return a host; an IPv4 address in its usual form, as 127.0.0.1 for 127.1 and 0x7f000001."""
    if re.fullmatch("[0-9a-fxA-FX.]*[0-9][0-9a-fxA-FX.]*", host):
        with suppress(OSError):
            return socket.inet_ntoa(socket.inet_aton(host))
    return host.partition("%")[0] if ":" in host else host


def _in_domain(host: str, word: str) -> bool:
    host = host[:-1] if host.endswith(".") else host
    word = word[:-1] if word.endswith(".") else word
    word = word[1:] if word.startswith(".") else word
    return host == word or (word != "" and host.endswith(f".{word}"))


def _in_network(address: bytes, word: str, family: socket.AddressFamily) -> bool:
    network, _, length = word.partition("/")
    packed = _packed(family, network)
    digits = re.match("[0-9]+", length)
    bits = int(digits[0]) if digits is not None and len(digits[0]) < 4 else 0
    if packed is None or bits > BITS[family]:
        return False
    rest = BITS[family] - (bits or BITS[family])
    return int.from_bytes(address, "big") >> rest == int.from_bytes(packed, "big") >> rest


def _packed(family: socket.AddressFamily, text: str) -> bytes | None:
    try:
        return socket.inet_pton(family, text)
    except (OSError, ValueError):
        return None


def _parsed(text: str, name: str, host: str) -> Proxy:
    """Return the proxy at an address. Raises ValueError."""
    scheme, slashes, rest = text.partition("://")
    scheme, rest = (scheme.lower(), rest) if slashes else ("http", text)
    where = f"{scheme}://{re.split('[/?#]', rest, maxsplit=1)[0].rpartition('@')[2]}"
    try:
        parts = urlsplit(f"http://{rest}")
        port = PROXY_PORT if parts.port is None else parts.port
    except ValueError:
        raise ValueError(f"{name}={where!r} is not the address of a proxy") from None
    if scheme != "http":
        raise ValueError(
            f"{name} names the proxy {where!r}, but only http:// proxies can be used: set another"
            f" one, or no_proxy={host} to ask the server directly"
        )
    if not parts.hostname or not port:
        raise ValueError(f"{name}={where!r} is not the address of a proxy")
    headers = {}
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers["Proxy-Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    return Proxy(parts.hostname, port, headers)
