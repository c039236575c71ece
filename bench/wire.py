"""A lean HTTP/1.1 client: prepared bytes out, status codes and times in.

It shares the machine with what it measures, so it does as little as it can: one closed loop per
connection, driven by callbacks, with no objects per request.
"""

import asyncio
import itertools
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import cast

HEAD_END = b"\r\n\r\n"
LENGTH = b"content-length:"


class BrokenAnswer(Exception):
    """The connection ended, or the answer is not one that this client can read."""


def request(method: str, path: str, body: bytes = b"", version: str = "1.39") -> bytes:
    """Build one request of Placement's administrator under its test scheme `noauth2`."""
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Auth-Token: admin\r\n"
        f"OpenStack-API-Version: placement {version}\r\nAccept: application/json\r\n"
    )
    if body:
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + body


@dataclass
class Outcome:
    """What a run of requests came to. `seconds` holds one latency per answer."""

    elapsed: float = 0.0
    seconds: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    received: int = 0
    """Bytes of answers, heads included."""
    sample: bytes = b""
    """The last answer that was not 2xx, for the report."""


class _Loop(asyncio.Protocol):
    """One connection that always has one request under way, until there are no more."""

    def __init__(self, requests: Iterator[bytes], outcome: Outcome) -> None:
        self.requests = requests
        self.outcome = outcome
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.buffer = b""
        self.expected = 0
        self.sent = 0.0
        self.waiting = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.next()

    def next(self) -> None:
        """Send the next request, or close."""
        request = next(self.requests, None)
        self.waiting = request is not None
        if request is None:
            self.transport.close()
            return
        self.sent = time.perf_counter()
        self.transport.write(request)

    def data_received(self, data: bytes) -> None:
        self.buffer = self.buffer + data if self.buffer else data
        if not self.expected:
            end = self.buffer.find(HEAD_END)
            if end < 0:
                return
            self.expected = end + len(HEAD_END) + _length(self.buffer[: end + 2])
        if len(self.buffer) < self.expected:
            return
        outcome = self.outcome
        outcome.seconds.append(time.perf_counter() - self.sent)
        status = int(self.buffer[9:12])
        outcome.statuses[status] += 1
        outcome.received += self.expected
        if status >= 300:
            outcome.sample = self.buffer
        self.buffer = b""
        self.expected = 0
        self.next()

    def connection_lost(self, error: Exception | None) -> None:
        if self.done.done():
            return
        if error or self.waiting:
            self.done.set_exception(
                BrokenAnswer(f"connection lost: {error or self.buffer[:200]!r}")
            )
        else:
            self.done.set_result(None)


def _length(head: bytes) -> int:
    at = head.lower().find(LENGTH)
    if at < 0:
        if head[9:12] in (b"204", b"304"):
            return 0
        raise BrokenAnswer(f"no content-length in {head[:200]!r}")
    return int(head[at + len(LENGTH) : head.index(b"\r\n", at)])


def until(deadline: float, requests: Iterator[bytes]) -> Iterator[bytes]:
    """Hand out requests until the deadline (of `time.perf_counter`) has passed."""
    return itertools.takewhile(lambda _: time.perf_counter() < deadline, requests)


async def drive(url: str, requests: Iterator[bytes], connections: int) -> Outcome:
    """Send all requests over this many connections, each waiting for its answer.

    Args:
        url: `http://HOST:PORT` of the service.
        requests: prepared by `request`; shared by the connections, taken as they get free.
        connections: how many are open at once.

    Raises:
        BrokenAnswer: a connection was lost or an answer could not be read.
    """
    host, _, port = url.removeprefix("http://").rpartition(":")
    outcome = Outcome()
    loop = asyncio.get_running_loop()
    started = time.perf_counter()
    loops: list[_Loop] = []
    for _ in range(connections):
        _, protocol = await loop.create_connection(
            lambda: _Loop(requests, outcome), host, int(port)
        )
        loops.append(protocol)
    await asyncio.gather(*(protocol.done for protocol in loops))
    outcome.elapsed = time.perf_counter() - started
    return outcome
