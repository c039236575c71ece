"""The connection to Nova's API, with a token of Keystone's."""

import asyncio
import ssl
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final

import aiohttp

from moorage.client.transport import shown_url
from moorage.integrations.answers import json_of, read_answer
from moorage.integrations.connection_errors import reason_of
from moorage.integrations.connections import Connections
from moorage.integrations.nova.asking import MINOR
from moorage.integrations.nova.pacing import Answer, NoAnswerError
from moorage.integrations.openstack.cloud_error import CloudAwayError

VERSIONS: Final = {"OpenStack-API-Version": f"compute 2.{MINOR}"}
TOKEN_HEADER: Final = "X-Auth-Token"

Token = Callable[[bool], str]
"""Returns the token; True: another one, because the last one was not accepted. It may block."""


class NovaConnection(Connections):
    """Open connections to one Nova. An async context manager."""

    def __init__(self, url: str, token: Token, tls: ssl.SSLContext | None = None) -> None:
        """Prepare to ask; `url` is that of the catalog, with the version of the API."""
        super().__init__(tls)
        self._url = url.rstrip("/")
        self.url = shown_url(self._url)
        """The address for people: without passwords."""
        self._token = token
        self._renewing = asyncio.Lock()

    async def send(self, path: str) -> Answer:
        """Send a GET once, or twice if the token has expired.

        Raises NoAnswerError, also while Keystone gives no new token, and CloudError.
        """
        try:
            token = await asyncio.to_thread(self._token, False)
            answer = await self._sent(path, token)
            if answer.status == HTTPStatus.UNAUTHORIZED:
                answer = await self._sent(path, await self._after(token))
        except CloudAwayError as error:
            raise NoAnswerError(str(error)) from None
        return answer

    async def _after(self, refused: str) -> str:
        """Return the token after one that is not accepted: for many requests the same."""
        async with self._renewing:
            token = await asyncio.to_thread(self._token, False)
            return await asyncio.to_thread(self._token, True) if token == refused else token

    async def _sent(self, path: str, token: str) -> Answer:
        headers = {**VERSIONS, TOKEN_HEADER: token}
        try:
            async with self._session("GET").get(
                f"{self._url}{path}", headers=headers, allow_redirects=False
            ) as answer:
                body = await read_answer(answer)
                return Answer(answer.status, _value(body), _seconds(answer.headers))
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            raise NoAnswerError(f"no answer from {self.url}: {reason_of(error)}") from error


def _value(body: bytes) -> Any:
    """Return the JSON of an answer; None: it has none."""
    try:
        return json_of(body) if body else None
    except ValueError:
        return None


def _seconds(headers: Any) -> float | None:
    """Return the seconds of a `Retry-After`; None: there is none, or it is a date."""
    value = str(headers.get("Retry-After", ""))
    return float(value) if value.isdecimal() else None
