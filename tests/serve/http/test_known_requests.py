"""A server that remembers requests answers as one that does not, whatever the packets are."""

import asyncio
import re
from typing import Any

import uvicorn
from hypothesis import given, settings
from hypothesis import strategies as st
from uvicorn.server import ServerState

from moorage.faces.web import PromptAnswer
from moorage.serve.http.prompt_connection import KnownRequests
from tests.serve.http.test_prompt_connection import (
    AB,
    ABC,
    CLOSE,
    SLOW,
    application,
    protocol,
    request,
)

CHUNKED = (
    b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"3\r\nabc\r\n0\r\nX-T: a\r\n\r\n"
)
USUAL = [
    *(ABC, ABC, ABC, AB, SLOW, SLOW, CHUNKED, request(b"not now"), request(b"twice")),
    *(b"\r\n", b"HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n", ABC + b"\r\n"),
    request(b"abc", b"Expect: 100-continue\r\n"),
]
PARTS = [
    *(ABC[:20], ABC[20:], CHUNKED[:-2], request(ABC)[: -len(ABC)], request(b"not now")[:-3]),
    *(b"\r", b"\n", b"now", b"PRI", b"GET / HTTP/1.1\r\n", b"Host: localhost\r\n\r\n"),
    *(request(b"abc", CLOSE), request(b"abc", version=b"1.0")),
    request(b"abc", b"Upgrade: h2c\r\nConnection: upgrade\r\n"),
    request(b"abc", b"Connection: keep-alive\r\n", b"1.0"),
    request(b"abc", b"Transfer-Encoding: chunked\r\n"),
    b"PUT / HTTP/1.1\r\nHost: localhost\r\nContent-Length: hi mom\r\n\r\n",
]
PACKETS = (
    st.sampled_from([ABC, ABC, SLOW]) | st.sampled_from(USUAL) | st.sampled_from(USUAL + PARTS)
)
STEPS = st.none() | PACKETS | st.lists(PACKETS, min_size=2, max_size=3).map(b"".join)
"""A packet; None: the requests that wait are released."""

TURNS = 20
"""Turns of the event loop in which everything is done that can be done."""


class Nothing(KnownRequests):
    """Remembers nothing."""

    def add(self, request: bytes, answer: PromptAnswer) -> None:
        """Forget it."""


class Memory(asyncio.Transport):
    """The end of a connection at the server; keeps what is sent."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = b""
        self.closed = False

    def write(self, data: Any) -> None:
        """Keep it."""
        self.sent += b"" if self.closed else bytes(data)

    def close(self) -> None:
        """Send nothing more."""
        self.closed = True

    abort = close

    def is_closing(self) -> bool:
        """Whether it was closed."""
        return self.closed

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return the addresses of both ends."""
        return {"peername": ("127.0.0.1", 1), "sockname": ("127.0.0.1", 2)}.get(name, default)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """It takes everything."""

    def get_write_buffer_size(self) -> int:
        """Return 0: everything was sent."""
        return 0

    def pause_reading(self) -> None:
        """The client of a test goes on."""

    def resume_reading(self) -> None:
        """As above."""


async def _played(steps: list[bytes | None], known: KnownRequests) -> bytes:
    config = uvicorn.Config(application, loop="none", log_config=None, interface="asgi3")
    config.load()
    made = protocol()
    made.known = known
    released = asyncio.Event()
    connection, transport = made(config, ServerState(), {"released": released}), Memory()
    connection.connection_made(transport)
    for step in [*steps, None]:
        if step is None:
            released.set()
        elif not transport.closed:
            connection.data_received(step)
        for _ in range(TURNS):
            await asyncio.sleep(0)
        released.clear()
    connection.connection_lost(None)
    for _ in range(TURNS):
        await asyncio.sleep(0)
    return transport.sent


def played(steps: list[bytes | None], known: KnownRequests) -> bytes:
    """Return everything that a server sends; it may not say how often it has answered."""
    sent = asyncio.run(_played(steps, known))
    return re.sub(rb"prompt:(\d+):\d+;|content-length: \d+\r\n", rb"prompt:\1;", sent)


@settings(deadline=None, max_examples=600)
@given(steps=st.lists(STEPS, min_size=2, max_size=9))
def test_any_packets(steps: list[bytes | None]) -> None:
    """The bytes are the same, in the same order."""
    assert played(steps, KnownRequests()) == played(steps, Nothing())
