"""Says in a few words why a connection failed."""

import os
from socket import gaierror

import aiohttp


def reason_of(error: BaseException) -> str:
    """Return why there was no answer: `Connection refused`, without the state of the client."""
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
    return str(error) or type(error).__name__


PLAIN = frozenset({OSError, PermissionError, ConnectionRefusedError, ConnectionResetError})
"""Errors whose numbers are those of the operating system; those of TLS and of DNS are not."""
