"""The heads of requests and answers: what is refused, and what a proxy passes on."""

import re
from collections.abc import Iterable

from multidict import CIMultiDict

HOP_BY_HOP = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Headers that concern one connection only (RFC 9110, 7.6.1)."""

FRAMING = frozenset(
    {
        *("content-length", "content-type", "content-encoding", "transfer-encoding"),
        *("path-info", "script-name", "request-method", "query-string"),
    }
)
"""Spelled with `_`, a WSGI server could take these for the headers with a dash, or for the path,
the method or the query of the request."""

OVERRIDING = frozenset(
    {
        *("x-http-method-override", "x-http-method", "x-method-override"),
        *("x-original-url", "x-rewrite-url", "x-original-uri"),
    }
)
"""Headers with which some servers and frameworks replace the method or the path of a request."""

READ = re.compile(r"connection|content-|expect|host|transfer-encoding|upgrade|x-openstack-")
"""Headers that the gate reads. They are in ASCII; others may have any letters (`obs-text` of
RFC 9110, 5.5), because nothing is decided by them."""

IGNORED_UPGRADES = frozenset({"h2c"})
"""Protocols that clients offer with ordinary requests, such as those of Java: it need not be taken,
and the offer is not passed on (RFC 9110, 7.8)."""

_LETTERS = r"\-A-Za-z0-9._~!$&'()*+,;=:@/"
TARGET = re.compile(
    rf"/(?:[{_LETTERS}]|%[0-9A-Fa-f]{{2}})*(?:\?(?:[{_LETTERS}?]|%[0-9A-Fa-f]{{2}})*)?"
)
"""A path and a query in the letters that RFC 3986 allows (3.3, 3.4). Programs differ about others:
nginx, for example, drops what follows `#`, and Ironic's server takes it for a part of the query."""
LENGTH = re.compile(r"[0-9]{1,18}")
CONDITIONAL = re.compile(r"if-|content-|range|expect|accept|x-openstack-ironic-api-version")
"""Headers of a request that do not belong to a reading of its node."""


class BadHeadError(ValueError):
    """Two programs could understand the head of a request in two ways; the message says why."""


def check_head(
    method: str, target: str, headers: CIMultiDict[str], version: tuple[int, int] = (1, 1)
) -> None:
    """Refuse what Ironic's server could understand in another way than the gate.

    Args:
        method: as sent.
        target: of the request line, as sent.
        headers: of the request.
        version: of HTTP; 1.0 needs no Host.

    Raises BadHeadError.
    """
    if version not in ((1, 0), (1, 1)):
        raise BadHeadError("Only HTTP/1.0 and HTTP/1.1 are supported.")
    old = version == (1, 0)
    if method == "CONNECT" or not TARGET.fullmatch(target):
        raise BadHeadError(
            "The address must be a path and a query in the characters of RFC 3986: encode others,"
            " such as '#', as '%' and two digits."
        )
    hosts = headers.getall("Host", [])
    if len(hosts) > 1 or not (hosts or old):
        raise BadHeadError("Send exactly one Host header.")
    if len(headers.getall("Content-Type", [])) > 1:
        raise BadHeadError("Send at most one Content-Type header.")
    lengths, codings = headers.getall("Content-Length", []), headers.getall("Transfer-Encoding", [])
    if len(lengths) + len(codings) > 1 or not all(map(LENGTH.fullmatch, lengths)):
        raise BadHeadError(
            "Send either one Content-Length, a number, or one Transfer-Encoding header."
        )
    if any(coding.strip().lower() != "chunked" for coding in codings) or (codings and old):
        raise BadHeadError("The only supported transfer coding is chunked, with HTTP/1.1.")
    if not _words(headers, "Upgrade") <= IGNORED_UPGRADES:
        raise BadHeadError("The protocol cannot be changed: omit the header Upgrade.")
    for name, value in headers.items():
        _check_header(name, value, says=(method, target))


def _check_header(name: str, value: str, *, says: tuple[str, str]) -> None:
    """Refuse a header; `says` are the method and the target that the request line has."""
    plain = name.lower().replace("_", "-")
    if (plain in OVERRIDING and value not in says) or ("_" in name and plain in FRAMING):
        raise BadHeadError(f"The header {name!r} is not allowed: omit it.")
    if any(ord(letter) < 32 and letter != "\t" for letter in value):
        raise BadHeadError(f"The header {name!r} is not valid.")
    if not value.isascii() and READ.match(plain):
        raise BadHeadError(f"The header {name!r} has characters that are not ASCII.")
    if any("\ud800" <= letter <= "\udfff" for letter in value):
        raise BadHeadError(f"The header {name!r} is not in UTF-8.")


def is_coded(headers: CIMultiDict[str]) -> bool:
    """Return whether the body of a request is compressed; `identity` says that it is not."""
    return not _words(headers, "Content-Encoding") <= {"identity"}


def end_to_end(raw: Iterable[tuple[bytes, bytes]]) -> CIMultiDict[str]:
    """Return the headers that a proxy passes on, in their order, duplicates included."""
    given = CIMultiDict((_text(name), _text(value)) for name, value in raw)
    own = HOP_BY_HOP | _words(given, "Connection")
    return CIMultiDict((name, value) for name, value in given.items() if name.lower() not in own)


def credentials(headers: CIMultiDict[str]) -> CIMultiDict[str]:
    """Return those of the end-to-end headers with which the gate reads a node for a client."""
    return CIMultiDict(
        (name, value) for name, value in headers.items() if not CONDITIONAL.match(name.lower())
    )


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def _words(headers: CIMultiDict[str], name: str) -> frozenset[str]:
    words = ",".join(headers.getall(name, []))
    return frozenset(word.strip().lower() for word in words.split(",") if word.strip())
