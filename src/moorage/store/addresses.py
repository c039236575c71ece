"""Addresses of databases as text: which engine they mean, and the password that may be in them.

Source of the form: PostgreSQL's documentation of libpq, "Connection URIs".
"""

import re
from urllib.parse import quote, unquote

_POSTGRES = ("postgresql://", "postgres://")

HIDDEN = "(hidden)"
"""What is shown in the place of a secret."""

_PARAMETER = re.compile(r"([?&])((?:ssl)?password|oauth_client_secret)=([^&]*)")


def is_postgres(url: str) -> bool:
    """Is it the address of a PostgreSQL database?"""
    return url.startswith(_POSTGRES)


def password_hidden(url: str) -> str:
    """Return an address as it may be shown: without the secrets in it."""
    begin, password, end = _split(url)
    if password:
        url = f"{begin}:{HIDDEN}{end}"
    return _PARAMETER.sub(rf"\1\2={HIDDEN}", url)


def has_password(url: str) -> bool:
    """Is there a secret in the address?"""
    return password_hidden(url) != url


def is_unescaped(url: str, password: str) -> bool:
    """Has a password characters that end it too early? The rest is then taken for a host or port.

    `password` is what the address was understood to say.
    """
    begin, told, _ = _split(url)
    named = re.search(r"[?&]password=", url) is not None
    if "?" in begin:  # it ended the address, and an @ in it was taken for that of USER
        return True
    return bool(told) and not named and unquote(told) != password


def password_removed(url: str) -> str:
    """Return the same address without the secrets in it; they may change, it is the same one."""
    begin, password, end = _split(url)
    if password:
        url = f"{begin}{end}"
    if not _PARAMETER.search(url):
        return url
    base, _, query = url.partition("?")
    kept = [one for one in query.split("&") if not _PARAMETER.match(f"&{one}")]
    return f"{base}?{'&'.join(kept)}" if kept else base


def with_password(url: str, password: str) -> str:
    """Return an address that has no password with one."""
    return f"{url}{'&' if '?' in url else '?'}password={quote(password, safe='')}"


def _split(url: str) -> tuple[str, str, str]:
    """Return what is before a password in `USER:PASSWORD@HOST`, the password, what is after it.

    A password may contain any character here: whoever forgets to escape one must not see it shown.
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
