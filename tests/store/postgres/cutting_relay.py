"""A relay before a PostgreSQL server that can drop what passes through it, in either direction."""

import asyncio
import re
from pathlib import Path

SOCKET = ".s.PGSQL.5432"

RECEIPT = re.compile(rb"(_pg3_\d+)\0\s*WITH receipt AS")
"""The statement that every batch runs just before its COMMIT, when it is given its name."""

COMMITTED = b"COMMIT\0"
"""In the server's answer to a COMMIT."""


class Relay:
    """Passes bytes on between clients and a server. Use it as an asynchronous context manager."""

    def __init__(self, folder: Path, server: Path) -> None:
        """`folder` is where clients find it, `server` where the server's socket is."""
        self.folder = folder
        self._server = server / SOCKET
        self._listener: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: list[asyncio.StreamWriter] = []
        self.deaf = False
        """From now on drop what clients send, and cut their connection."""
        self.mute = False
        """From now on drop what the server answers, and cut the client's connection."""
        self.commits_to_lose = 0
        """Drop the answers of this many next commits, by cutting the client's connection."""
        self.commits_to_swallow = 0
        """Drop this many next commits before they reach the server, and cut the connection."""
        self.cut = asyncio.Event()
        """A line was cut."""
        self._receipts: dict[asyncio.StreamWriter, bytes] = {}
        """The prepared name of the receipt statement on a connection that has left a receipt."""

    async def __aenter__(self) -> "Relay":
        path = str(self.folder / SOCKET)
        self._listener = await asyncio.start_unix_server(self._accept, path)
        return self

    async def __aexit__(self, *raised: object) -> None:
        assert self._listener is not None
        self._listener.close()
        for writer in self._writers:
            writer.transport.abort()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def heal(self) -> None:
        """Let new connections pass."""
        self.deaf = self.mute = False
        self.cut.clear()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_server, to_server = await asyncio.open_unix_connection(str(self._server))
        self._writers += [writer, to_server]
        for work in (
            self._upwards(reader, to_server, writer),
            self._downwards(from_server, writer),
        ):
            task = asyncio.get_running_loop().create_task(work)
            self._tasks.add(task)

    async def _upwards(
        self,
        reader: asyncio.StreamReader,
        server: asyncio.StreamWriter,
        client: asyncio.StreamWriter,
    ) -> None:
        while content := await _some(reader):
            if self.deaf or self._swallows(client, content):
                self.cut.set()
                client.transport.abort()
                return  # The server's side stays open: it does not know.
            server.write(content)
        server.close()

    async def _downwards(self, reader: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        while content := await _some(reader):
            if self.mute or self._loses(client, content):
                self.cut.set()
                client.transport.abort()
                return
            client.write(content)
        client.close()

    def _swallows(self, client: asyncio.StreamWriter, asked: bytes) -> bool:
        """Is this a commit that is to be swallowed? It comes with its receipt."""
        if found := RECEIPT.search(asked):
            self._receipts[client] = b"\0" + found[1] + b"\0"
        name = self._receipts.get(client)
        if self.commits_to_swallow and name is not None and name in asked:
            self.commits_to_swallow -= 1
            return True
        return False

    def _loses(self, client: asyncio.StreamWriter, answer: bytes) -> bool:
        """Is this the answer to a commit that is to be lost?"""
        if self.commits_to_lose and client in self._receipts and COMMITTED in answer:
            self.commits_to_lose -= 1
            return True
        return False


async def _some(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read(65_536)
    except ConnectionError:
        return b""
