"""A pooler in transaction mode in front of a PostgreSQL server: each transaction on any session.

Like in PgBouncer, a session of the server belongs to a client from its first message until the
server is idle and outside of a transaction.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Literal

from tests.store.postgres.cutting_relay import SOCKET

ENCRYPTED = (80877103, 80877104)
"""Codes of requests for TLS and GSSAPI, which come before the startup message."""


class Session:
    """One session of the server, and its startup messages."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.greeting = b""
        self.due = 0
        """The number of answers that are still expected."""

    async def greet(self, startup: bytes) -> None:
        """Begin the session with a client's startup message."""
        self.writer.write(startup)
        kind = b""
        while kind != b"Z":
            kind, message = await read(self.reader)
            self.greeting += message


class TransactionPooler:
    """The pooler. Use it as an asynchronous context manager.

    `order`: which idle session is taken, the one used last or the one idle longest. There are at
    least `least` sessions.
    """

    def __init__(
        self, folder: Path, server: Path, order: Literal["last", "turns"] = "last", least: int = 1
    ) -> None:
        self._folder, self._server = folder, server
        self._at = -1 if order == "last" else 0
        self._least = least
        self._idle: list[Session] = []
        self._writers: list[asyncio.StreamWriter] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self.handed_out = 0
        """How often a session was assigned to a client."""

    async def __aenter__(self) -> "TransactionPooler":
        path = str(self._folder / SOCKET)
        self._listener = await asyncio.start_unix_server(self._accept, path)
        return self

    async def __aexit__(self, *raised: object) -> None:
        self._listener.close()
        for writer in self._writers:
            writer.transport.abort()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        self._begin(partial(self._client, reader, writer))

    def _begin(self, work: Callable[[], Awaitable[None]]) -> None:
        async def quietly() -> None:
            with suppress(
                ConnectionError, asyncio.IncompleteReadError
            ):  # a client has disconnected
                await work()

        self._tasks.add(asyncio.get_running_loop().create_task(quietly()))

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        startup = await self._startup(reader, writer)
        while len(self._idle) < self._least:
            self._idle.append(await self._session(startup))
        writer.write(self._idle[0].greeting)
        held: list[Session] = []
        while True:
            kind, message = await read(reader)
            if kind == b"X":
                for session in held:
                    session.writer.transport.abort()
                return
            if not held:
                taken = self._idle.pop(self._at) if self._idle else await self._session(startup)
                held.append(taken)
                self.handed_out += 1
                self._begin(partial(self._answers, held, writer))
            held[0].due += kind in (b"Q", b"S")
            held[0].writer.write(message)

    async def _startup(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        while True:
            length = await reader.readexactly(4)
            content = await reader.readexactly(int.from_bytes(length) - 4)
            if int.from_bytes(content[:4]) not in ENCRYPTED:
                return length + content
            writer.write(b"N")

    async def _session(self, startup: bytes) -> Session:
        reader, writer = await asyncio.open_unix_connection(str(self._server / SOCKET))
        self._writers.append(writer)
        session = Session(reader, writer)
        await session.greet(startup)
        return session

    async def _answers(self, held: list[Session], client: asyncio.StreamWriter) -> None:
        """Forward what the session says until it is idle again."""
        (session,) = held
        while True:
            kind, message = await read(session.reader)
            if kind == b"Z":
                session.due -= 1
                if not session.due and message.endswith(b"I"):
                    held.clear()
                    self._idle.append(session)
                    client.write(message)
                    return
            client.write(message)


async def read(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """Return the next message of the protocol: its kind, and all of it."""
    head = await reader.readexactly(5)
    return head[:1], head + await reader.readexactly(int.from_bytes(head[1:]) - 4)
