"""HTTP Basic, as the clients of Boskos send it if they are given a user and a password file.

A caller without a valid pair is answered 403. A 401 would be the standard's answer, but Boskos'
clients take it for "somebody else has it" and would ask again for ever.
Source: RFC 7617.
"""

import binascii
from base64 import b64decode
from collections.abc import Iterable
from hashlib import sha256

from moorage.faces.addresses import client_of
from moorage.faces.golang.responses import Answer, refusal
from moorage.faces.web import Scope

SCHEME = b"basic "


class Passwords:
    """The pairs `USER:PASSWORD` of which a caller must send one. No pairs: anyone may call."""

    def __init__(self, pairs: Iterable[str] = ()) -> None:
        self._users: dict[bytes, str] = {}
        self.replace(pairs)

    def replace(self, pairs: Iterable[str]) -> None:
        """Let these be the valid pairs from now on."""
        # Found by their hashes, so that the time of a search tells nothing of a password.
        self._users = {sha256(one.encode()).digest(): one.partition(":")[0] for one in pairs}

    def refused(self, scope: Scope) -> Answer | None:
        """Return the answer to a caller who sends no valid pair; None: this one does."""
        if not self._users or self.user(scope) is not None:
            return None
        return refusal(403, "HTTP Basic credentials are missing or wrong.")

    def user(self, scope: Scope) -> str | None:
        """Return the user whose pair was sent; None: none, or no valid one."""
        for name, value in scope["headers"] if self._users else ():
            if name == b"authorization" and value[: len(SCHEME)].lower() == SCHEME:
                try:
                    pair = b64decode(value[len(SCHEME) :].strip(), validate=True)
                except binascii.Error:
                    return None
                return self._users.get(sha256(pair).digest())
        return None

    def caller(self, scope: Scope) -> str:
        """Return who is calling, for audit rows: the user if there is one, and the address."""
        address = client_of(scope) or "unknown"
        user = self.user(scope)
        return address if user is None else f"{user}@{address}"
