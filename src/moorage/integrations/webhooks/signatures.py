"""Signatures of posts, as https://www.standardwebhooks.com specifies them.

A receiver computes the HMAC-SHA256 of `ID.TIMESTAMP.BODY`, compares it, and refuses old timestamps.
"""

import binascii
import hmac
from base64 import b64decode, b64encode

PREFIX = "whsec_"
"""How a secret in base64 begins; any other is taken as it is."""


def key_of(secret: str) -> bytes:
    """Return the key of a secret. Raises ValueError: it begins as base64 and is none."""
    if not secret.startswith(PREFIX):
        return secret.encode()
    try:
        return b64decode(secret.removeprefix(PREFIX), validate=True)
    except binascii.Error:
        raise ValueError(
            f"the secret for signatures begins with {PREFIX} but is not base64"
        ) from None


def signature(secret: str, post_id: str, timestamp: int, body: bytes) -> str:
    """Return the value of the header `webhook-signature`. Raises ValueError."""
    signed = b".".join((post_id.encode(), str(timestamp).encode(), body))
    return f"v1,{b64encode(hmac.digest(key_of(secret), signed, 'sha256')).decode()}"
