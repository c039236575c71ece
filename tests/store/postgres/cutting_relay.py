"""A relay before a PostgreSQL server that can drop what passes through it, in either direction."""

import asyncio
import re
from pathlib import Path

SOCKET = ".s.PGSQL.5432"

RECEIPT = re.compile(
    rb"(moorage_\d+)\0\s*(?:WITH receipt AS \()?\s*INSERT INTO batch \(id, revision, kept\)"
    rb"\s*SELECT \$1::uuid, revision, true"
)
"""Names the prepared statement that every batch runs just before its COMMIT."""

COMMITTED = b"COMMIT\0"
"""A part of the server's answer to a COMMIT."""


class Relay:
    """Relays bytes between clients and a server. Use it as an asynchronous context manager."""

    def __init__(self, folder: Path, server: Path) -> None:
        """`folder` is for the relay's socket; `server` is the folder of the server's socket."""
        self.folder = folder
        self._server = server / SOCKET
        self._listener: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: list[asyncio.StreamWriter] = []
        self.drops_requests = False
        """From now on drop what clients send, and cut their connection."""
        self.drops_answers = False
        """From now on drop what the server answers, and cut the client's connection."""
        self.commit_answers_to_drop = 0
        """Drop the answers of this many next commits, by cutting the client's connection."""
        self.commits_to_drop = 0
        """Drop this many next commits before they reach the server, and cut the connection."""
        self.cut = asyncio.Event()
        """Set when a connection is cut."""
        self._receipts: dict[asyncio.StreamWriter, set[bytes]] = {}
        """The prepared names of receipt statements on a connection that has left a receipt."""

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
        self.drops_requests = self.drops_answers = False
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
            if self.drops_requests or self._drops_commit(client, content):
                self.cut.set()
                client.transport.abort()
                return  # The server's side stays open: the server does not notice.
            server.write(content)
        server.close()

    async def _downwards(self, reader: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        while content := await _some(reader):
            if self.drops_answers or self._drops_commit_answer(client, content):
                self.cut.set()
                client.transport.abort()
                return
            client.write(content)
        client.close()

    def _drops_commit(self, client: asyncio.StreamWriter, asked: bytes) -> bool:
        """Is this a commit to drop? A commit is sent together with its receipt."""
        for found in RECEIPT.finditer(asked):
            self._receipts.setdefault(client, set()).add(b"\0" + found[1] + b"\0")
        names = self._receipts.get(client, ())
        if self.commits_to_drop and any(name in asked for name in names):
            self.commits_to_drop -= 1
            return True
        return False

    def _drops_commit_answer(self, client: asyncio.StreamWriter, answer: bytes) -> bool:
        """Is this the answer to a commit, and to be dropped?"""
        if self.commit_answers_to_drop and client in self._receipts and COMMITTED in answer:
            self.commit_answers_to_drop -= 1
            return True
        return False


async def _some(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read(65_536)
    except ConnectionError:
        return b""
