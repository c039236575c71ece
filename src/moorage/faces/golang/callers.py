"""Admits callers: programs, with a password if there are passwords, and no web pages.

The password is that of HTTP Basic authentication (RFC 7617), which Boskos' clients support with a
user and a password file. A caller without a valid pair gets a 403. The standard asks for a 401, but
Boskos' clients read that as "somebody else has it" and would retry forever.

Without tokens, any web page could act on behalf of its visitor. Clients of Boskos and of the lease
proxy are programs, which send none of the headers of browsers. Source: Fetch standard, "Origin" and
"Sec-Fetch-Site".
"""

import binascii
from base64 import b64decode
from collections.abc import Iterable
from hashlib import sha256

from moorage.faces.addresses import client_of
from moorage.faces.golang.responses import Response, refusal
from moorage.faces.web import Scope

SCHEME = b"basic "


class Passwords:
    """The valid `USER:PASSWORD` pairs. Without pairs, no password is needed."""

    def __init__(self) -> None:
        self._users: dict[bytes, str] = {}

    def replace(self, pairs: Iterable[str]) -> None:
        """Replace the valid pairs."""
        # Looked up by hash, so that the time of a lookup reveals nothing about a password.
        self._users = {sha256(one.encode()).digest(): one.partition(":")[0] for one in pairs}

    def refused(self, scope: Scope) -> Response | None:
        """Return the refusal of a request without a valid pair; None if it may proceed."""
        if not self._users or self.user(scope) is not None:
            return None
        return refusal(403, "HTTP Basic credentials are missing or wrong.")

    def user(self, scope: Scope) -> str | None:
        """Return the user whose valid pair was sent; None if there is none."""
        for name, value in scope["headers"] if self._users else ():
            if name == b"authorization" and value[: len(SCHEME)].lower() == SCHEME:
                try:
                    pair = b64decode(value[len(SCHEME) :].strip(), validate=True)
                except binascii.Error:
                    return None
                return self._users.get(sha256(pair).digest())
        return None

    def caller(self, scope: Scope) -> str:
        """Return the caller for audit rows: the user, if there is one, and the address."""
        address = client_of(scope) or "unknown"
        user = self.user(scope)
        return address if user is None else f"{user}@{address}"


_FOREIGN = frozenset({b"cross-site", b"same-site"})


def browser_refused(scope: Scope) -> Response | None:
    """Return the refusal of a request sent by a web page; None for all other requests."""
    for name, value in scope["headers"]:
        if name == b"origin" or (name == b"sec-fetch-site" and value.lower() in _FOREIGN):
            return refusal(403, "Requests of web pages are refused here.")
    return None
