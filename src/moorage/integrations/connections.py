"""The connections to another system, on which no request that changes something is sent twice."""

import ssl
from types import TracebackType
from typing import Self

import aiohttp

from moorage.integrations.no_retry import no_retry

SECONDS_MAX = 60.0
"""How long to wait for one answer."""

CONNECT_SECONDS = 10.0
"""How long to wait for a connection: what is sent later could start work after its unit was
released, see `provisioning/unit_release.py`."""


class Connections:
    """Open connections to one system. An async context manager."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        """Prepare to connect; `tls`: whom to trust, None: the authorities of the system."""
        self._tls: ssl.SSLContext | bool = tls or True

    async def __aenter__(self) -> Self:
        self._reading = self._opened(force_close=False)
        # Each on a connection of its own: it cannot meet one that the other side is closing.
        self._writing = self._opened(force_close=True)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._reading.close()
        await self._writing.close()

    def _session(self, method: str) -> aiohttp.ClientSession:
        """Return the session for requests with this method."""
        return self._reading if method == "GET" else self._writing

    def _opened(self, *, force_close: bool) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=self._tls, force_close=force_close),
            timeout=aiohttp.ClientTimeout(total=SECONDS_MAX, connect=CONNECT_SECONDS),
            middlewares=(no_retry,) if force_close else (),
        )
