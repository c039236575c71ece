"""Texts of connection errors for people, in logs and in answers."""

import os
import ssl
from collections.abc import Iterable
from socket import gaierror

import aiohttp
from aiohttp.http import HttpProcessingError

from moorage.client.run.printing import printable


def reason_of(error: BaseException) -> str:
    """Return why there was no answer, on one line: `Connection refused`.

    Not the `repr` of the error: that of aiohttp's errors has the headers of the request, and so its
    token. Nor what the other side has sent: it could repeat the token.
    """
    if isinstance(error, aiohttp.NonHttpUrlClientError | aiohttp.InvalidURL):
        return "this is not an http:// or https:// address"
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        error = error.certificate_error
    if isinstance(error, aiohttp.ClientConnectorError):
        error = error.os_error
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {printable(error.verify_message)}"
    if isinstance(error, ssl.CertificateError | ssl.SSLError):
        return "the TLS handshake failed: is this the address of an HTTPS server?"
    if isinstance(error, gaierror):
        return str(error.strerror)
    if isinstance(error, OSError) and (error.errno or 0) > 0:
        # asyncio puts `Connect call failed` and the address in place of the reason.
        return os.strerror(error.errno or 0)
    return next((said for kinds, said in SAID if isinstance(error, kinds)), _own_text(error))


def _own_text(error: BaseException) -> str:
    """Return the text of an error, without the name of its class."""
    return printable(str(error)) or "the connection was lost"


def without(text: str, secrets: Iterable[str]) -> str:
    """Return a text of the other side without the secrets that were sent to it."""
    for secret in secrets:
        if len(secret) >= SECRET_LENGTH_MIN:
            text = text.replace(secret, "***")
    return text


SECRET_LENGTH_MIN = 6
"""Characters: a shorter value of a header is a word such as `yes`."""

NOT_HTTP = (aiohttp.ClientResponseError, aiohttp.ClientPayloadError, HttpProcessingError)

SAID = (
    (TimeoutError, "it takes too long"),
    (NOT_HTTP, "the answer breaks off or is not HTTP"),
    ((aiohttp.ServerConnectionError, EOFError), "the connection was closed without an answer"),
)
"""Texts for kinds of errors whose own text is from the library or the other side."""
