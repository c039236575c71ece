"""A lean HTTP/1.1 client: prepared bytes out, status codes and times in.

It shares the machine with what it measures, so it does as little as it can: one closed loop per
connection, driven by callbacks, with no objects per request. Where one request needs the answer to
another, the work is a generator that is sent each answer and yields the next request.
"""

import asyncio
import itertools
import time
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, cast

HEAD_END = b"\r\n\r\n"
LENGTH = b"content-length:"
CHUNKED = b"transfer-encoding: chunked"
CHUNKS_END = b"\r\n0\r\n\r\n"
"""How an answer in chunks ends. No JSON that is measured here has a line break in it."""
BROKEN = 599
"""The status under which an answer is counted that never came, or could not be read."""
REFUSED_KEPT_MAX = 10_000


class BrokenAnswer(Exception):
    """The answer is not one that this client can read."""


class Answer(NamedTuple):
    """One complete answer, as a conversation gets it."""

    status: int
    body: bytes


Conversation = Generator[bytes, Answer, int | None]
"""Requests of which each may depend on the answers before it; together one operation.

It may return the status that the whole is counted under; otherwise that is the highest one met.
"""
Work = bytes | Conversation


def request(method: str, path: str, body: bytes = b"", version: str = "1.39") -> bytes:
    """Build one request of Placement's administrator under its test scheme `noauth2`."""
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Auth-Token: admin\r\n"
        f"X-Roles: admin,service\r\nOpenStack-API-Version: placement {version}\r\n"
        "Accept: application/json\r\n"
    )
    if body:
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + body


@dataclass
class Outcome:
    """What a run of operations came to. `seconds` holds one latency per operation."""

    elapsed: float = 0.0
    seconds: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    received: int = 0
    """Bytes of answers, heads included."""
    refused: list[bytes] = field(default_factory=list)
    """The single requests that were not answered 2xx, the first REFUSED_KEPT_MAX of them."""
    sample: bytes = b""
    """The last answer that was not 2xx, for the report."""


@dataclass
class _Drive:
    """What the connections of one run share."""

    work: Iterator[Work]
    outcome: Outcome
    keeps: bool


class _Loop(asyncio.Protocol):
    """One line of operations: always one request under way, until there is no more work.

    Servers that close after each answer get a new connection for each request; the object stays.
    """

    def __init__(self, drive: _Drive, host: str, port: int) -> None:
        self.drive = drive
        self.address = (host, port)
        self.loop = asyncio.get_running_loop()
        self.done: asyncio.Future[None] = self.loop.create_future()
        self.transport: asyncio.Transport | None = None
        self.buffer = bytearray()
        self.expected = 0
        self.request = b""
        self.talk: Conversation | None = None
        self.worst = 0
        self.chunked = False
        self.spent = 0.0
        self.sent = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        if self.request:
            self.transport.write(self.request)

    def begin(self) -> None:
        """Take the next operation, or end."""
        work = next(self.drive.work, None)
        self.worst, self.spent = 0, 0.0
        if work is None:
            self.request = b""
            if self.transport is not None:
                self.transport.close()
            if not self.done.done():  # it is done when the run has ended
                self.done.set_result(None)
        elif isinstance(work, bytes):
            self.talk = None
            self.send(work)
        else:
            self.talk = work
            self.send(next(work))

    def send(self, request: bytes) -> None:
        self.request = request
        self.buffer.clear()
        self.expected = 0
        self.sent = time.perf_counter()
        if self.transport is not None:
            self.transport.write(request)
        else:
            self.task = self.loop.create_task(self.reconnect())

    async def connect(self) -> None:
        await self.loop.create_connection(lambda: self, *self.address)

    async def reconnect(self) -> None:
        try:
            await self.connect()
        except OSError as error:
            self.answered(BROKEN, repr(error).encode())

    def data_received(self, data: bytes) -> None:
        buffer = self.buffer
        buffer += data
        if not self.expected:
            end = buffer.find(HEAD_END)
            if end < 0:
                return
            length = _length(bytes(buffer[: end + 2]))
            if length is None and not buffer.endswith(CHUNKS_END):
                return
            whole = len(buffer) if length is None else end + len(HEAD_END) + length
            self.chunked, self.expected = length is None, whole
        if len(buffer) < self.expected:
            return
        if not self.drive.keeps:
            self.drop()
        self.drive.outcome.received += self.expected
        answer = b"" if self.talk is None else bytes(buffer)
        if answer and self.chunked:
            head, _, chunks = answer.partition(HEAD_END)
            answer = head + HEAD_END + b"".join(chunks.split(b"\r\n")[1:-2:2])
        self.answered(int(buffer[9:12]), answer)

    def answered(self, status: int, answer: bytes) -> None:
        """Count an answer; continue with the conversation or the next operation."""
        self.spent += time.perf_counter() - self.sent
        self.worst = max(self.worst, status)
        outcome = self.drive.outcome
        if status >= 300:
            outcome.sample = answer or bytes(self.buffer)
            if self.talk is None and len(outcome.refused) < REFUSED_KEPT_MAX:
                outcome.refused.append(self.request)
        if self.talk is not None:
            try:
                self.send(self.talk.send(Answer(status, answer.partition(HEAD_END)[2])))
                return
            except StopIteration as end:
                self.worst = end.value or self.worst
        outcome.seconds.append(self.spent)
        outcome.statuses[self.worst] += 1
        self.begin()

    def drop(self) -> None:
        """Give this connection up; what still happens on it does not concern us."""
        transport, self.transport = self.transport, None
        if transport is not None:
            transport.set_protocol(asyncio.Protocol())
            transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        self.transport = None
        if self.request and not self.done.done():
            self.answered(
                BROKEN, f"connection lost: {error or bytes(self.buffer[:200])!r}".encode()
            )


def _length(head: bytes) -> int | None:
    """Return how long the body is; None: it comes in chunks."""
    if CHUNKED in head.lower():
        return None
    at = head.lower().find(LENGTH)
    if at < 0:
        if head[9:12] in (b"204", b"304"):
            return 0
        raise BrokenAnswer(f"no content-length in {head[:200]!r}")
    return int(head[at + len(LENGTH) : head.index(b"\r\n", at)])


def bounded(work: Iterator[Work], seconds: float, least: int, most: int) -> Iterator[Work]:
    """Hand out work until `seconds` from now have passed, but `least` and never over `most`."""
    deadline = time.perf_counter() + seconds
    # Looks at the time first: work that is taken must be done.
    for number in range(most):
        if number >= least and time.perf_counter() >= deadline:
            return
        try:
            one = next(work)
        except StopIteration:
            return
        yield one


async def drive(
    urls: Sequence[str], work: Iterator[Work], connections: int, *, keeps: bool = True
) -> Outcome:
    """Do all the work over this many connections, each waiting for its answers.

    All connections are open before the first request is sent.

    Args:
        urls: `http://HOST:PORT` of every process of the service; connections take turns.
        work: shared by the connections, taken as they get free.
        connections: how many operations are under way at once.
        keeps: does the server keep a connection after an answer?

    Raises:
        BrokenAnswer: an answer could not be read.
    """
    outcome = Outcome()
    shared = _Drive(work, outcome, keeps)
    loops = []
    for url, _ in zip(itertools.cycle(urls), range(connections), strict=False):
        host, _, port = url.removeprefix("http://").rpartition(":")
        loops.append(_Loop(shared, host, int(port)))
    await asyncio.gather(*(loop.connect() for loop in loops))
    started = time.perf_counter()
    for loop in loops:
        loop.begin()
    await asyncio.gather(*(loop.done for loop in loops))
    outcome.elapsed = time.perf_counter() - started
    return outcome


async def ask(url: str, request: bytes, *, keeps: bool = True) -> Answer:
    """Send one request outside of any measurement; return its answer."""
    answers: list[Answer] = []

    def conversation() -> Conversation:
        answers.append((yield request))
        return None

    await drive([url], iter([conversation()]), 1, keeps=keeps)
    return answers[0]
