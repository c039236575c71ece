"""Headers of every answer of the dashboard, and its cookie.

The policy permits only files of this origin: no inline script, style or event handler, and no other
origin. HTML text can be parsed only by the Trusted Types policy `moorage`, in `static/live.js`.
"""

import re
from collections.abc import Iterable, Mapping

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


PORT = re.compile(r":(\d{1,5})\Z")
SECRET = re.compile(r"[\w-]{1,64}", re.ASCII)
"""The form of a cookie's value; others are not ours."""


def cookie_name(scope: Scope, headers: Mapping[str, str]) -> str:
    """Return the name of the session's cookie.

    Browsers send cookies to every port of a host. So without TLS, where several servers may share
    one host, the name has the port that the browser sees: that of a proxy, if there is one.
    With a prefix, the cookie is for its paths only, because others may belong to other servers.
    """
    if scope["scheme"] == "https":
        return "__Secure-moorage" if scope.get("root_path") else "__Host-moorage"
    port = PORT.search(headers.get("host", ""))
    return f"moorage-{port[1]}" if port else "moorage"


def cookie_read(scope: Scope, headers: Mapping[str, str]) -> str | None:
    """Return the secret of the session in the request's cookie; None: it has none.

    `http.cookies` is not used: it takes seconds for some cookies, and drops all after an invalid
    one, which another server on this host may have set.
    """
    name, found = cookie_name(scope, headers), None
    # Several `cookie` headers were joined with a comma, which is in no secret.
    for part in headers.get("cookie", "").replace(",", ";").split(";"):
        given, _, value = part.strip().partition("=")
        if given == name and SECRET.fullmatch(value):
            found = value
    return found


def cookie_set(scope: Scope, headers: Mapping[str, str], secret: str) -> tuple[bytes, bytes]:
    """Return the header that sets the session's cookie, or deletes it if the secret is empty.

    The server decides when the session ends; the cookie itself ends with the browser.
    """
    path = scope.get("root_path") or "/"
    name = cookie_name(scope, headers)
    parts = [f"{name}={secret}", f"Path={path}", "HttpOnly", "SameSite=Strict"]
    if scope["scheme"] == "https":
        parts.append("Secure")
    if not secret:
        parts.append("Max-Age=0")
    return b"set-cookie", "; ".join(parts).encode()


def is_from_elsewhere(headers: Mapping[str, str]) -> bool:
    """Return whether a link of another site has led here.

    Without TLS, browsers say so only with the address of that site.
    """
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site == "cross-site"
    linked = headers.get("referer", "").partition("://")[2].partition("/")[0]
    return linked not in ("", headers.get("host", ""))


def head(media_type: str, *more: tuple[bytes, bytes]) -> Headers:
    """Return the headers of an answer that must not be stored."""
    return [(b"content-type", media_type.encode()), NO_STORE, *SAFE, *more]


def with_length(headers: Iterable[tuple[bytes, bytes]], body: bytes) -> Headers:
    """Return the headers with the length of the body."""
    return [*headers, (b"content-length", str(len(body)).encode())]
