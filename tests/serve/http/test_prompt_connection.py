"""Which requests are answered while they are parsed, and that nothing else changes."""

import asyncio
import re
from ipaddress import ip_network
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from moorage.faces.web import Headers, PromptAnswer, Scope
from moorage.serve.http.connection_limits import Bounds
from moorage.serve.http.hosts import Hosts
from moorage.serve.http.memory_budget import MemoryBudgets
from moorage.serve.http.prompt_connection import KNOWN_BYTES_MAX, PROMPT_BYTES_MAX, KnownRequests
from moorage.serve.http.protocol import GuardedProtocol, protocol_for
from moorage.serve.http.proxies import Proxies

BOUNDS = Bounds(8_192, 20, 5.0, 5.0)
LAST = b"GET /last HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


def request(body: bytes, more: bytes = b"", version: bytes = b"1.1") -> bytes:
    """Return a request that `prompt` answers unless its body says that it must not."""
    length = b"Content-Length: %d\r\n" % len(body)
    return b"POST / HTTP/%s\r\nHost: localhost\r\n%s%s\r\n%s" % (version, length, more, body)


def answer_of(body: bytes) -> tuple[int, Headers, bytes]:
    """Return an answer with a body."""
    return 200, [(b"content-length", str(len(body)).encode())], body


async def application(scope: Scope, receive: Any, send: Any) -> None:
    """Answer that a task has answered, with the length of the body; `/slow` when it is released."""
    size = 0
    if scope["path"] == "/slow":
        await scope["state"]["released"].wait()
    while True:
        part = await receive()
        size += len(part.get("body", b""))
        if not part.get("more_body"):
            break
    status, headers, body = answer_of(b"task:%d;" % size)
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def prompt(scope: Scope, body: bytes) -> PromptAnswer | None:
    """Answer, unless the body asks not to; `twice` is answered at most twice."""
    if scope["method"] != "POST" or body == b"not now":
        return None
    answers = 0

    def answer(scheme: str, client: str) -> tuple[int, Headers, bytes] | None:
        nonlocal answers
        answers += 1
        assert (scheme, client) == ("http", "127.0.0.1")
        if body == b"twice" and answers > 2:
            return None
        return answer_of(b"prompt:%d:%d;" % (len(body), answers))

    return answer


def protocol(*proxies: str) -> type[GuardedProtocol]:
    """Return a protocol that trusts these proxies."""
    networks = tuple(map(ip_network, proxies))
    return protocol_for(BOUNDS, Hosts("127.0.0.1", ()), Proxies(networks), MemoryBudgets(), prompt)


async def answered(
    *packets: bytes,
    made: type[GuardedProtocol] | None = None,
    idle: float = 5,
    slow: float = 0,
) -> bytes:
    """Send packets, each once the server has read the one before; return what is received.

    Args:
        packets: to send.
        made: the protocol; None: one that trusts no proxy.
        idle: the seconds after which an idle connection is closed.
        slow: the seconds from the last packet to the answers of `/slow`.
    """
    config = uvicorn.Config(application, loop="none", log_config=None, interface="asgi3")
    config.load()
    config.timeout_keep_alive = idle  # type: ignore[assignment] # it may be a fraction
    base = made or protocol()
    read, released = asyncio.Semaphore(0), asyncio.Event()

    class Seen(base):  # type: ignore[misc, valid-type] # a class that is made
        """Reports what it has read."""

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            read.release()

    state = ServerState()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: Seen(config, state, {"released": released}), "127.0.0.1", 0
    )
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname()[:2])
    try:
        for packet in packets:
            writer.write(packet)
            await asyncio.wait_for(read.acquire(), 10)
        loop.call_later(slow, released.set)
        received = await asyncio.wait_for(reader.read(), 10)
    finally:
        writer.close()
        server.close()
    return received


def parts(received: bytes) -> list[str]:
    """Return who has answered, in order, with the length of the body."""
    return re.findall(r"(?:prompt|task):\d+", received.decode())


def repeats(received: bytes) -> list[int]:
    """Return how often what answered from memory had answered then, for each such answer."""
    return [int(count) for count in re.findall(r"prompt:\d+:(\d+);", received.decode())]


CLOSE = b"Connection: close\r\n"
LONG = b"x" * PROMPT_BYTES_MAX


@pytest.mark.parametrize(
    ("packets", "expected"),
    [
        ([request(b"abc") + LAST], ["prompt:3", "task:0"]),
        ([request(b"abc"), LAST], ["prompt:3", "task:0"]),
        ([request(LONG), LAST], [f"prompt:{len(LONG)}", "task:0"]),
        ([request(LONG + b"x"), LAST], [f"task:{len(LONG) + 1}", "task:0"]),
        ([request(b"not now"), LAST], ["task:7", "task:0"]),
        ([request(b"abc")[:-1], b"c", LAST], ["task:3", "task:0"]),
        ([request(b"abc")[:20], request(b"abc")[20:], LAST], ["prompt:3", "task:0"]),
        ([request(b"abc", CLOSE)], ["task:3"]),
        ([request(b"abc", version=b"1.0")], ["task:3"]),
        ([request(b"a") + request(b"ab") + LAST], ["prompt:1", "prompt:2", "task:0"]),
        ([request(b"a") + request(b"not now") + request(b"ab") + LAST], None),
        ([request(b"not now") + request(b"ab") + LAST], ["task:7", "task:2", "task:0"]),
        ([request(b"not now") + request(b"ab")[:-1], b"b", LAST], ["task:7", "task:2", "task:0"]),
    ],
)
def test_who_answers(packets: list[bytes], expected: list[str] | None) -> None:
    """A request is answered at once if it is alone, short, complete, and the connection stays.

    Answers have the order of the requests in any case.
    """
    if expected is None:
        expected = ["prompt:1", "task:7", "task:2", "task:0"]
    assert parts(asyncio.run(answered(*packets))) == expected


@pytest.mark.parametrize("cut", range(0, len(request(b"abc")), 7))
def test_packets_of_any_size(cut: int) -> None:
    """Wherever the network divides two requests, both are answered, in order."""
    sent = request(b"abc") + request(b"abcd")
    found = parts(asyncio.run(answered(*filter(None, (sent[:cut], sent[cut:])), LAST)))
    assert [one.partition(":")[2] for one in found] == ["3", "4", "0"]


ABC, AB = request(b"abc"), request(b"ab")
PARTIAL = request(b"not now")[:-1]


@pytest.mark.parametrize(
    ("packets", "expected"),
    [
        ([ABC, ABC, ABC, LAST], [1, 2, 3]),
        ([ABC, AB, ABC, AB, LAST], [1, 1, 2, 2]),
        ([ABC, request(b"abd"), LAST], [1, 1]),
        ([ABC, request(b"abc", b"X: y\r\n"), ABC, LAST], [1, 1, 2]),
        ([b"\r\n" + ABC, b"\r\n" + ABC, ABC, LAST], [1, 2, 1]),
        ([ABC + AB, ABC + AB, LAST], [1, 1, 1, 1]),
        ([ABC + AB[:9], AB[9:], ABC + AB[:9], AB[9:], LAST], [1, 1, 1, 1]),
        ([ABC[:9], ABC[9:], ABC, ABC, LAST], [1, 1, 2]),
        ([AB, PARTIAL, b"w" + AB, LAST], [1]),
        ([ABC, LAST], [1]),
    ],
)
def test_the_same_bytes_again(packets: list[bytes], expected: list[int]) -> None:
    """A packet that is one whole request is not parsed again; a part of another request is."""
    assert repeats(asyncio.run(answered(*packets))) == expected


@pytest.mark.parametrize("cut", range(1, len(ABC), 5))
def test_known_bytes_within_another_request(cut: int) -> None:
    """A body may consist of the bytes of a request that was answered before: it is only a body."""
    body = request(ABC, b"X-Outer: yes\r\n")
    begin = body.index(ABC)
    packets = [ABC, body[:begin], ABC, LAST]
    assert parts(asyncio.run(answered(*packets))) == ["prompt:3", f"task:{len(ABC)}", "task:0"]
    packets = [ABC, body[: begin + cut], body[begin + cut :], ABC, LAST]
    found = parts(asyncio.run(answered(*packets)))
    assert found == ["prompt:3", f"task:{len(ABC)}", "prompt:3", "task:0"]


def test_memory_that_is_no_longer_enough() -> None:
    """A known request that memory cannot answer now is parsed, and answered by a task."""
    received = asyncio.run(answered(*[request(b"twice")] * 4, LAST))
    assert parts(received) == ["prompt:5", "prompt:5", "prompt:5", "prompt:5", "task:0"]
    assert repeats(received) == [1, 2, 1, 2]


SLOW = b"GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.mark.parametrize("packets", [[ABC, ABC + SLOW, ABC], [ABC, SLOW, ABC]])
def test_known_bytes_behind_an_unanswered_request(packets: list[bytes]) -> None:
    """Answers have the order of the requests: known bytes wait for the answer before theirs."""
    found = parts(asyncio.run(answered(*packets, LAST)))
    assert found[-3:] == ["task:0", "task:3", "task:0"]


def test_a_connection_with_an_unanswered_request_is_not_idle() -> None:
    """The time for idle connections does not count while a request is being answered."""
    found = parts(asyncio.run(answered(ABC + SLOW + LAST, idle=0.01, slow=0.02)))
    assert found == ["prompt:3", "task:0", "task:0"]


def test_empty_lines_between_known_requests() -> None:
    """Empty lines before a known request do not count as part of the next one's headers."""
    lines = b"\r\n" * (BOUNDS.header_bytes_max // 3)
    found = repeats(asyncio.run(answered(*[ABC, lines] * 4, LAST)))
    assert found == [1, 2, 3, 4]


@pytest.mark.parametrize(("trusted", "kept"), [((), 1), (("127.0.0.1",), 0)])
def test_requests_of_proxies_take_no_memory(trusted: tuple[str, ...], kept: int) -> None:
    """They are always parsed, so they are not remembered."""
    made = protocol(*trusted)
    assert len(parts(asyncio.run(answered(ABC, ABC, LAST, made=made)))) == 3
    assert len(made.known) == kept


def test_known_requests_that_are_added_again() -> None:
    """They replace what was known of them, and nothing else is forgotten."""
    known, answers = KnownRequests(2), [prompt({"method": "POST"}, b"abc") for _ in range(3)]
    for name, answer in zip((b"a", b"b", b"b"), answers, strict=True):
        assert answer is not None
        known.add(name, answer)
    assert [known.get(b"a"), known.get(b"b")] == [answers[0], answers[2]]


def test_known_requests_are_bounded() -> None:
    """The first known is forgotten first; long requests are never remembered."""
    known = KnownRequests(2)
    answer = prompt({"method": "POST"}, b"abc")
    assert answer is not None
    for name in (b"a", b"b", b"c", b"x" * (KNOWN_BYTES_MAX + 1)):
        known.add(name, answer)
    assert len(known) == 2
    assert known.get(b"a") is known.get(b"x" * (KNOWN_BYTES_MAX + 1)) is None
    assert known.get(b"b") is known.get(b"c") is answer


def test_an_invalid_second_request() -> None:
    """The first one is answered, the second is refused, and then the connection ends."""
    received = asyncio.run(answered(request(b"abc") + b"GET / HTTP/1.1\r\n\r\n"))
    assert received.count(b"prompt:3:1;") == 1
    assert b"HTTP/1.1 400" in received.partition(b"prompt:3:1;")[2]
