"""Headers of every answer of the dashboard, and its cookie.

The policy permits only files of this origin: no inline script, style or event handler, and no other
origin. HTML text can be parsed only by the Trusted Types policy `moorage`, in `static/live.js`.
"""

from collections.abc import Iterable
from http.cookies import CookieError, SimpleCookie

from moorage.faces.web import Scope

Headers = list[tuple[bytes, bytes]]

CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types moorage",
    )
)

SAFE: tuple[tuple[bytes, bytes], ...] = (
    (b"content-security-policy", CONTENT_SECURITY_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)

NO_STORE = (b"cache-control", b"no-store")


def cookie_name(scope: Scope) -> str:
    """Return the name of the session's cookie.

    Browsers send cookies to every port of a host. So without TLS, where several servers may share
    one host, the name has the port.
    """
    if scope["scheme"] == "https":
        return "__Host-moorage"
    server = scope.get("server")
    return f"moorage-{server[1]}" if server and server[1] else "moorage"


def cookie_read(scope: Scope, headers: dict[str, str]) -> str | None:
    """Return the secret of the session in the request's cookie; None: it has none."""
    try:
        # Several `cookie` headers were joined with a comma, which is not valid in a cookie's value.
        jar = SimpleCookie(headers.get("cookie", "").replace(",", ";"))
    except CookieError:
        return None
    found = jar.get(cookie_name(scope))
    return found.value if found is not None and found.value else None


def cookie_set(scope: Scope, secret: str) -> tuple[bytes, bytes]:
    """Return the header that sets the session's cookie, or deletes it if the secret is empty.

    The server decides when the session ends; the cookie itself ends with the browser.
    """
    parts = [f"{cookie_name(scope)}={secret}", "Path=/", "HttpOnly", "SameSite=Strict"]
    if scope["scheme"] == "https":
        parts.append("Secure")
    if not secret:
        parts.append("Max-Age=0")
    return b"set-cookie", "; ".join(parts).encode()


def head(media_type: str, *more: tuple[bytes, bytes]) -> Headers:
    """Return the headers of an answer that must not be stored."""
    return [(b"content-type", media_type.encode()), NO_STORE, *SAFE, *more]


def with_length(headers: Iterable[tuple[bytes, bytes]], body: bytes) -> Headers:
    """Return the headers with the length of the body."""
    return [*headers, (b"content-length", str(len(body)).encode())]
