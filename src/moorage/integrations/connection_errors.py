"""What errors of connections say to people, in logs and in answers."""

import os
from collections.abc import Iterable
from socket import gaierror

import aiohttp
from aiohttp.http import HttpProcessingError

from moorage.client.run.printing import printable
from moorage.integrations.answers import LongAnswerError


def reason_of(error: BaseException) -> str:
    """Return why there was no answer, on one line: `Connection refused`.

    Not the `repr` of the error: that of aiohttp's errors has the headers of the request, and so its
    token. Nor what the other side has sent: it could repeat the token.
    """
    if isinstance(error, aiohttp.NonHttpUrlClientError | aiohttp.InvalidURL):
        return "this is not an http:// or https:// address"
    if isinstance(error, aiohttp.ClientConnectorError):
        error = error.os_error
    if isinstance(error, OSError) and error.errno and type(error) in PLAIN:
        # asyncio puts `Connect call failed` and the address in place of the reason.
        return os.strerror(error.errno)
    if isinstance(error, gaierror):
        return str(error.strerror)
    if isinstance(error, TimeoutError):
        return "it takes too long"
    if isinstance(error, NOT_HTTP):
        return "the answer breaks off or is not HTTP"
    if isinstance(error, LongAnswerError):
        return str(error)
    text, kind = printable(str(error)), type(error).__name__
    return f"{kind}: {text}" if text else kind


def without(text: str, secrets: Iterable[str]) -> str:
    """Return a text of the other side without the secrets that were sent to it."""
    for secret in secrets:
        if len(secret) >= SECRET_LENGTH_MIN:
            text = text.replace(secret, "***")
    return text


SECRET_LENGTH_MIN = 6
"""Characters: a shorter value of a header is a word such as `yes`."""

NOT_HTTP = (aiohttp.ClientResponseError, aiohttp.ClientPayloadError, HttpProcessingError)

PLAIN = frozenset({OSError, PermissionError, ConnectionRefusedError, ConnectionResetError})
"""Errors whose numbers are those of the operating system; those of TLS and of DNS are not."""
