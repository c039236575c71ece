"""Keeps the body of a decided request until it is forwarded: in memory if small, else in a file."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from tempfile import SpooledTemporaryFile
from typing import Self

from aiohttp import web

from moorage.integrations.ironic.gate.passing import Incoming
from moorage.integrations.ironic.provision_request import (
    ProvisionPath,
    ProvisionRequest,
    request_of,
)

MEMORY_BYTES = 64 << 10
"""A larger body is in a temporary file."""

BODY_BYTES_MAX = 128 << 20
"""Ironic's configuration drives have up to 64 MiB."""

ALL_BYTES_MAX = 4 << 30
"""All bodies in files; smaller ones are never refused because of them."""

ADDRESS_BYTES_MAX = ALL_BYTES_MAX // 4
"""Those of one client's address: it cannot take the room of all others."""

PIECE_BYTES = 256 << 10


class TooLargeError(Exception):
    """The body is too large, or the bodies of all held requests are."""


class Spools:
    """The bodies of all held requests."""

    def __init__(self) -> None:
        self.held = 0
        """Bytes in files."""
        self.by_address: Counter[str] = Counter()
        self.parsing = asyncio.Semaphore(1)
        """One large body is parsed at a time: it takes several times its size in memory."""


class Spool:
    """The body of one request. A context manager, also for several users at once: it has a file."""

    def __init__(self, spools: Spools, request: web.Request) -> None:
        self._spools = spools
        self._incoming = Incoming(request)
        self._address = request.remote or ""
        self._users = 0
        self._file = SpooledTemporaryFile(max_size=MEMORY_BYTES)  # noqa: SIM115 - closed with the spool
        self._size = 0
        self._filed = 0
        """Bytes of it that count because they are in a file."""

    def __enter__(self) -> Self:
        self._users += 1
        return self

    def __exit__(self, *_: object) -> None:
        self._users -= 1
        if self._users:
            return
        self._file.close()
        self._spools.held -= self._filed
        self._spools.by_address[self._address] -= self._filed
        if not self._spools.by_address[self._address]:
            del self._spools.by_address[self._address]
        self._size = self._filed = 0

    async def fill(self) -> None:
        """Read the body. Raises TooLargeError, BodyError."""
        if not self._incoming.present:
            return
        async for piece in self._incoming.pieces():
            self._size += len(piece)
            if self._size > MEMORY_BYTES:
                self._count()
                await asyncio.to_thread(self._file.write, piece)
            else:
                self._file.write(piece)

    def _count(self) -> None:
        """Count the body as one in a file. Raises TooLargeError."""
        spools, more = self._spools, self._size - self._filed
        self._filed = self._size
        spools.held += more
        spools.by_address[self._address] += more
        if (
            self._size > BODY_BYTES_MAX
            or spools.held > ALL_BYTES_MAX
            or spools.by_address[self._address] > ADDRESS_BYTES_MAX
        ):
            raise TooLargeError

    async def asked(
        self, place: ProvisionPath, address: str, content_type: str | None
    ) -> ProvisionRequest:
        """Return the request that the body has. Raises AmbiguousError."""

        def parse() -> ProvisionRequest:
            self._file.seek(0)
            return request_of(place, address, content_type, self._file.read())

        if self._size <= MEMORY_BYTES:
            return parse()
        async with self._spools.parsing:
            return await asyncio.to_thread(parse)

    def body(self) -> AsyncIterator[bytes] | None:
        """Return the body for sending it; None: there is none."""
        return self._pieces() if self._incoming.present else None

    async def _pieces(self) -> AsyncIterator[bytes]:
        at = 0
        while True:
            self._file.seek(at)
            if not (piece := self._file.read(PIECE_BYTES)):
                return
            at += len(piece)
            yield piece
