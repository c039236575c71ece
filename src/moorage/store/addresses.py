"""Addresses of databases as text: the engine or the file that they select, and their passwords.

Source of the syntax: PostgreSQL's documentation of libpq, "Connection URIs".
"""

import os
import re
from urllib.parse import quote, unquote

from moorage.store.api import Unusable

_SQLITE = "sqlite:///"
_POSTGRES = ("postgresql://", "postgres://")

HIDDEN = "(hidden)"
"""Shown in place of a secret."""

_PARAMETER = re.compile(r"([?&])((?:ssl)?password|oauth_client_secret)=([^&]*)")


def is_postgres(url: str) -> bool:
    """Return whether this is the address of a PostgreSQL database."""
    return url.startswith(_POSTGRES)


def sqlite_path(url: str) -> str:
    """Return the absolute path of a SQLite address, without symbolic links: one lock per file.

    Raises Unusable: it is not a SQLite address.
    """
    path = url.removeprefix(_SQLITE)
    if path == url or not path or path.startswith(":") or "\0" in path or path.endswith("/"):
        raise Unusable(
            f"{password_hidden(url)!r} is not the address of a database; use sqlite:///PATH"
            " or postgresql://..."
        )
    return os.path.realpath(path)


def password_hidden(url: str) -> str:
    """Return an address that is safe to show: its secrets are replaced by `HIDDEN`."""
    begin, password, end = _split(url)
    if password:
        url = f"{begin}:{HIDDEN}{end}"
    return _PARAMETER.sub(rf"\1\2={HIDDEN}", url)


def has_password(url: str) -> bool:
    """Return whether the address contains a secret."""
    return password_hidden(url) != url


def is_unescaped(url: str, password: str) -> bool:
    """Return whether unescaped characters cut the password short, leaving a wrong host or port.

    `password` is the password that libpq read from the address.
    """
    begin, password_part, _ = _split(url)
    named = re.search(r"[?&]password=", url) is not None
    if "?" in begin:  # the password's `?` began the query, so the `@` found is not USER's
        return True
    return bool(password_part) and not named and unquote(password_part) != password


def password_removed(url: str) -> str:
    """Return the address without its secrets: it stays the same when they are changed."""
    begin, password, end = _split(url)
    if password:
        url = f"{begin}{end}"
    if not _PARAMETER.search(url):
        return url
    base, _, query = url.partition("?")
    kept = [one for one in query.split("&") if not _PARAMETER.match(f"&{one}")]
    return f"{base}?{'&'.join(kept)}" if kept else base


def with_password(url: str, password: str) -> str:
    """Add a password to an address that has none."""
    return f"{url}{'&' if '?' in url else '?'}password={quote(password, safe='')}"


def _split(url: str) -> tuple[str, str, str]:
    """Split `USER:PASSWORD@HOST` into the text before the password, the password, and the rest.

    The password may contain any character, so that one that is not escaped is hidden, too.
    """
    scheme, slashes, rest = url.partition("://")
    host = rest.partition("/")[0]
    if "@" not in host:
        host = rest.partition("?")[0]
    credentials, _, _ = host.rpartition("@")
    user, _, password = credentials.partition(":")
    begin = f"{scheme}{slashes}{user}"
    if not password:
        return begin, "", url[len(begin) :]
    return begin, password, url[len(begin) + 1 + len(password) :]
