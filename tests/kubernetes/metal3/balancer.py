"""A TCP load balancer before API servers, and a slow network between one of them and its store."""

import asyncio
from contextlib import suppress
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

CHUNK = 65_536


class Pipes:
    """Accepts connections, and passes their bytes on. Asynchronous context manager.

    `url` is its address. `targets` are the addresses of servers; a new connection goes to the first
    one that accepts it. `delay` is the number of seconds by which what servers send is late. While
    `flows` is not set nothing of it arrives, and connections stay open.
    """

    def __init__(self, *targets: str) -> None:
        self.targets = [*targets]
        self.delay = 0.0
        self.flows = asyncio.Event()
        self.flows.set()
        self.carried: list[str] = []
        """The target of each connection until now."""
        self._scheme = urlsplit(targets[0]).scheme
        self._open: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._listener = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        port = self._listener.sockets[0].getsockname()[1]
        self.url = f"{self._scheme}://127.0.0.1:{port}"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._listener.close()
        self.cut()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut(self) -> None:
        """End all connections."""
        for writer in self._open:
            writer.transport.abort()

    def prefer(self, target: str) -> None:
        """Move all clients: end their connections; new ones go to this server if it accepts."""
        self.targets.sort(key=lambda one: one != target)
        self.cut()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for target in self.targets:
            address = urlsplit(target)
            with suppress(OSError):
                other, upwards = await asyncio.open_connection(address.hostname, address.port)
                break
        else:
            writer.transport.abort()
            return
        self.carried.append(target)
        self._open |= {writer, upwards}
        for work in (self._upwards(reader, upwards), self._downwards(other, writer)):
            task = asyncio.create_task(work)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _upwards(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(CHUNK):
                writer.write(data)
                await writer.drain()
        self._end(writer)

    async def _downwards(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        late: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
        sending = asyncio.create_task(self._late(late, writer))
        try:
            with suppress(OSError):
                while data := await reader.read(CHUNK):
                    late.put_nowait((self._now() + self.delay, data))
            late.put_nowait((self._now(), b""))
            await sending
        finally:
            sending.cancel()
            self._end(writer)

    async def _late(
        self, late: "asyncio.Queue[tuple[float, bytes]]", writer: asyncio.StreamWriter
    ) -> None:
        with suppress(OSError):
            while True:
                due, data = await late.get()
                arrives = asyncio.Event()
                asyncio.get_running_loop().call_at(due, arrives.set)
                await arrives.wait()
                await self.flows.wait()
                if not data:
                    return
                writer.write(data)
                await writer.drain()

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    def _end(self, writer: asyncio.StreamWriter) -> None:
        self._open.discard(writer)
        writer.close()
