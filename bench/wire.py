"""A minimal HTTP/1.1 client: it sends prepared bytes, and records status codes and times.

It shares the machine with the service that it measures, so it does as little as possible: one
closed loop per connection, driven by callbacks, with no objects per request. If a request needs the
answer to another one, the work is a generator that receives the answer and yields the request.
"""

import asyncio
import http.client
import itertools
import time
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import NamedTuple, cast
from urllib.parse import urlencode, urlsplit

HEAD_END = b"\r\n\r\n"
LENGTH = b"content-length:"
CHUNKED = b"transfer-encoding: chunked"
CHUNKS_END = b"\r\n0\r\n\r\n"
"""The end of a chunked answer. No measured JSON contains a line break."""
BROKEN = 599
"""The status that counts answers that never arrived or could not be parsed."""
REFUSED_KEPT_MAX = 10_000


class BrokenAnswer(Exception):
    """The client cannot parse the answer."""


class Answer(NamedTuple):
    """One complete answer, as sent to a conversation."""

    status: int
    body: bytes


Conversation = Generator[bytes, Answer, int | None]
"""Requests that form one operation; each may depend on the answers before it.

It may return the status of the operation, which is otherwise the highest status of its answers.
"""
Work = bytes | Conversation


def request(method: str, path: str, body: bytes = b"", version: str = "1.39") -> bytes:
    """Return a request of an administrator of Placement, in its test scheme `noauth2`."""
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Auth-Token: admin\r\n"
        f"X-Roles: admin,service\r\nOpenStack-API-Version: placement {version}\r\n"
        "Accept: application/json\r\n"
    )
    if body:
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + body


class Session(NamedTuple):
    """A reader of the dashboard who is signed in. The name of the cookie depends on the port."""

    netloc: str = "127.0.0.1"
    cookie: str = ""

    def get(self, path: str, *headers: str) -> bytes:
        """Return a request for a page."""
        lines = [f"GET {path} HTTP/1.1", f"Host: {self.netloc}", f"Cookie: {self.cookie}", *headers]
        return "\r\n".join([*lines, "", ""]).encode()


NOBODY = Session()


def sign_in(url: str, token: str) -> Session:
    """Return a new session of the dashboard. Raises RuntimeError."""
    netloc = urlsplit(url).netloc
    connection = http.client.HTTPConnection(netloc)
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Origin": url}
    connection.request("POST", "/ui/sign-in", urlencode({"token": token}), headers)
    answer = connection.getresponse()
    if answer.status != HTTPStatus.SEE_OTHER:
        raise RuntimeError(f"the sign-in was answered with {answer.status}")
    cookie = answer.headers["Set-Cookie"].partition(";")[0]
    connection.close()
    return Session(netloc, cookie)


@dataclass
class Outcome:
    """The results of some operations. `seconds` has one latency per operation."""

    elapsed: float = 0.0
    seconds: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    received: int = 0
    """Bytes of all answers, headers included."""
    refused: list[bytes] = field(default_factory=list)
    """The first REFUSED_KEPT_MAX single requests whose answers were not 2xx."""
    sample: bytes = b""
    """The last answer that was not 2xx, for the report."""


@dataclass
class _Drive:
    """What the connections of a run share."""

    work: Iterator[Work]
    outcome: Outcome
    keeps: bool


class _Loop(asyncio.Protocol):
    """A closed loop of operations: one request is always in progress, until the work ends.

    It opens a new connection for each request to servers that close after each answer.
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
        """Start the next operation, or end."""
        work = next(self.drive.work, None)
        self.worst, self.spent = 0, 0.0
        if work is None:
            self.request = b""
            if self.transport is not None:
                self.transport.close()
            if not self.done.done():  # it is done if the run was cancelled
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
        """Count an answer; continue the conversation or start the next operation."""
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
        """Close this connection and ignore what still happens on it."""
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
    """Return the length of the body; None if it is chunked."""
    if CHUNKED in head.lower():
        return None
    at = head.lower().find(LENGTH)
    if at < 0:
        if head[9:12] in (b"204", b"304"):
            return 0
        raise BrokenAnswer(f"no content-length in {head[:200]!r}")
    return int(head[at + len(LENGTH) : head.index(b"\r\n", at)])


def bounded(work: Iterator[Work], seconds: float, least: int, most: int) -> Iterator[Work]:
    """Yield work for `seconds` from now, but at least `least` and at most `most` operations."""
    deadline = time.perf_counter() + seconds
    # Check the time first: work that was taken must be done.
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
    """Do all the work over several connections; each waits for its answers.

    All connections are open before the first request is sent.

    Args:
        urls: `http://HOST:PORT` of every process of the service; connections are spread over them.
        work: the operations; each connection takes the next when it is free.
        connections: the number of concurrent operations.
        keeps: whether the server keeps connections open after an answer.

    Raises:
        BrokenAnswer: if an answer cannot be parsed.
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
    """Send one request without measuring it; return its answer."""
    answers: list[Answer] = []

    def conversation() -> Conversation:
        answers.append((yield request))
        return None

    await drive([url], iter([conversation()]), 1, keeps=keeps)
    return answers[0]
