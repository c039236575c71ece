"""Requests that must not be sent twice: aiohttp repeats a PUT or DELETE after a lost connection.

The answer to the second request says nothing about the first: it is refused because the first one
works already, and the refusal would look as if nothing had begun.
"""

import aiohttp
from aiohttp import ClientHandlerType, ClientRequest, ClientResponse

from moorage.integrations.connection_errors import reason_of


class LostError(aiohttp.ClientError):
    """The connection was lost: the request may have been executed."""


async def no_retry(request: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
    """Send a request once; a middleware of aiohttp's client."""
    try:
        return await handler(request)
    except aiohttp.ClientConnectorError:
        raise
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise LostError(reason_of(error)) from error
