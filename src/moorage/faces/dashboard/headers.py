"""Headers of every answer of the dashboard, and the forms of answers.

The policy permits only files of this origin: no inline script, style or event handler, and no other
origin. HTML text can be parsed only by the Trusted Types policy `moorage`, in `static/live.js`.
"""

from collections.abc import Iterable, Mapping
from http import HTTPStatus

from moorage.faces.dashboard.routing import Answer

Headers = list[tuple[bytes, bytes]]
Reply = tuple[int, Headers, bytes]
"""Status, headers and body."""

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

HTML = "text/html; charset=utf-8"
HTML_HEADER = (b"content-type", HTML.encode())


def head(media_type: str, *more: tuple[bytes, bytes]) -> Headers:
    """Return the headers of an answer that must not be stored."""
    return [(b"content-type", media_type.encode()), NO_STORE, *SAFE, *more]


def with_length(headers: Iterable[tuple[bytes, bytes]], body: bytes) -> Headers:
    """Return the headers with the length of the body."""
    return [*headers, (b"content-length", str(len(body)).encode())]


def html(text: str, *more: tuple[bytes, bytes], status: int = HTTPStatus.OK) -> Reply:
    """Answer with a page."""
    return status, head(HTML, *more), text.encode()


def redirect(target: str, *more: tuple[bytes, bytes]) -> Reply:
    """Lead to another address, which the browser gets."""
    location = (b"location", target.encode("ascii", "strict"))
    return HTTPStatus.SEE_OTHER, [location, NO_STORE, *SAFE, *more], b""


def data(answer: Answer, headers: Mapping[str, str]) -> Reply:
    """Answer with what is not a page, compressed for browsers that accept it."""
    more: Headers = []
    if answer.filename is not None:
        more.append((b"content-disposition", f'attachment; filename="{answer.filename}"'.encode()))
    body = answer.body
    if answer.compressed is not None and "gzip" in headers.get("accept-encoding", ""):
        body = answer.compressed
        more.append((b"content-encoding", b"gzip"))
    return HTTPStatus.OK, head(answer.media_type, *more), body
