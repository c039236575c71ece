"""Whether an answer was read, as real connections show it."""

import asyncio
import socket
import struct
from collections.abc import Callable
from typing import Any, cast

import pytest
import uvloop

from moorage.serve.http.delivery import DeliveryWatch

ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi"
SECONDS = 10.0


class Answering(asyncio.Protocol):
    """Answers the first bytes of a connection, and watches the answer."""

    def __init__(self, known: "asyncio.Future[bool | None]", before: Callable[[], None]) -> None:
        self._known = known
        self._before = before
        self._watch: DeliveryWatch | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the connection."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Answer, after something has happened to the client."""
        if self._watch is not None:
            self._watch.further()
            return
        self._before()
        loop = asyncio.get_running_loop()
        self._watch = DeliveryWatch(self._transport, loop, self._learn)
        self._transport.write(ANSWER)
        self._watch.written()

    def _learn(self, read: bool | None) -> None:
        """Keep what became of the answer, and end the connection."""
        self._known.set_result(read)
        self._transport.close()

    def eof_received(self) -> bool:
        """Note the end of the client's half, and keep the other one."""
        assert self._watch is not None
        self._watch.ended(reset_shows=True)
        return not self._watch.is_settled

    def connection_lost(self, exc: Exception | None) -> None:
        """Note the end of the connection."""
        if self._watch is not None and not self._watch.is_settled:
            self._watch.lost(exc)


def nothing(_client: socket.socket) -> None:
    """Do nothing."""


def ends(client: socket.socket) -> None:
    """Close the connection."""
    client.close()


def resets(client: socket.socket) -> None:
    """Reset the connection."""
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()


def reads(client: socket.socket) -> None:
    """Read the answer, and stay."""
    assert client.recv(1_000) == ANSWER


def reads_and_ends(client: socket.socket) -> None:
    """Read the answer, and close the connection."""
    reads(client)
    client.close()


def ends_its_half(client: socket.socket) -> None:
    """Send nothing more, and leave the answer unread."""
    client.shutdown(socket.SHUT_WR)


def ends_its_half_first(client: socket.socket) -> None:
    """Send nothing more, and close the connection with the answer unread."""
    ends_its_half(client)
    client.close()


def ends_its_half_and_reads(client: socket.socket) -> None:
    """Send nothing more, then read the answer."""
    ends_its_half(client)
    reads(client)


def reads_and_asks(client: socket.socket) -> None:
    """Read the answer, and send another request."""
    reads(client)
    client.sendall(b"more")


CASES: dict[str, tuple[Callable[[Any], None], Callable[[Any], None], bool]] = {
    "it has read the answer and ends": (nothing, reads_and_ends, True),
    "it has read the answer and asks again": (nothing, reads_and_asks, True),
    "it has read the answer and stays": (nothing, reads, True),
    "it ends its half, and reads": (nothing, ends_its_half_and_reads, True),
    "it has ended its half, and reads": (ends_its_half, reads, True),
    "it ends its half, and closes unread": (nothing, ends_its_half_first, False),
    "it is killed with the answer unread": (nothing, ends, False),
    "it resets the connection": (nothing, resets, False),
    "it was closed just before the answer": (ends, nothing, False),
    "it was reset just before the answer": (resets, nothing, False),
}


LOOPS = {"uvloop": uvloop.new_event_loop, "asyncio": asyncio.new_event_loop}
"""The server's own, and Python's."""


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("loop", LOOPS)
def test_what_a_connection_shows(loop: str, case: str) -> None:
    """Only an answer that has reached a client which had it in hand counts as read."""
    before, after, expected = CASES[case]

    async def scenario() -> bool | None:
        loop = asyncio.get_running_loop()
        known: asyncio.Future[bool | None] = loop.create_future()
        client = socket.socket()
        server = await loop.create_server(
            lambda: Answering(known, lambda: before(client)), "127.0.0.1", 0
        )
        async with server:
            await asyncio.to_thread(client.connect, server.sockets[0].getsockname())
            await loop.run_in_executor(None, client.sendall, b"please")
            if before in (nothing, ends_its_half):
                await asyncio.to_thread(_until_there, client)
                await asyncio.to_thread(after, client)
            async with asyncio.timeout(SECONDS):
                found = await known
            client.close()
            return found

    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        assert runner.run(scenario()) is expected


def _until_there(client: socket.socket) -> None:
    """Wait until the answer is in the kernel of the client."""
    client.settimeout(SECONDS)
    assert client.recv(1, socket.MSG_PEEK)
