"""Calls from browsers on another origin (CORS). Disabled unless an origin is set.

Source: the Fetch standard, "CORS protocol"; the answers match those of oslo.middleware.
"""

from collections.abc import Mapping

Headers = list[tuple[bytes, bytes]]

METHODS = frozenset({"GET", "PUT", "POST", "DELETE", "HEAD", "PATCH", "OPTIONS"})
REQUEST_HEADERS = frozenset(
    {
        "accept",
        "accept-language",
        "content-language",
        "content-type",
        "openstack-api-version",
        "x-auth-token",
        "x-openstack-request-id",
    }
)
EXPOSED = b"openstack-api-version,x-openstack-request-id"
AGE_SECONDS = b"3600"


def preflight(origin_allowed: str, headers: Mapping[str, str]) -> Headers:
    """Return the headers for the answer to an OPTIONS request; empty if it is refused."""
    method = headers.get("access-control-request-method", "")
    wanted = headers.get("access-control-request-headers", "")
    names = [name.strip() for name in wanted.split(",") if name.strip()]
    if headers.get("origin") != origin_allowed or method not in METHODS:
        return []
    if any(name.lower() not in REQUEST_HEADERS for name in names):
        return []
    granted = [
        (b"vary", b"Origin"),
        (b"access-control-allow-origin", origin_allowed.encode("latin-1")),
        (b"access-control-allow-credentials", b"true"),
        (b"access-control-max-age", AGE_SECONDS),
        (b"access-control-allow-methods", method.encode("latin-1")),
    ]
    if names:
        granted.append((b"access-control-allow-headers", ",".join(names).encode("latin-1")))
    return granted


def decoration(origin_allowed: str, headers: Mapping[str, str]) -> Headers:
    """Return the headers for the answer to any other request."""
    if headers.get("origin") != origin_allowed:
        return []
    return [
        (b"vary", b"Origin"),
        (b"access-control-allow-origin", origin_allowed.encode("latin-1")),
        (b"access-control-allow-credentials", b"true"),
        (b"access-control-expose-headers", EXPOSED),
    ]
