"""Long responses are written while they are read, in bounded memory, and never cut unnoticed."""

import asyncio
import gc
import json
import tracemalloc
from collections import deque
from collections.abc import Awaitable, Callable, Iterator

import pytest

from moorage.core.errors import Code, Error
from moorage.faces import long_answers as module
from moorage.faces.long_answers import WHOLE_BYTES_MAX, LongAnswer, long_send
from moorage.faces.web import ABORT, Message, Scope
from moorage.service.unsent_memory import UnsentMemory
from tests.faces.placement.support.client import Client
from tests.support.virtual_loop import VirtualLoop, run, turns

pytestmark = pytest.mark.thorough

CHILDREN = 24
QUESTION = "/allocation_candidates?group_policy=isolate&" + "&".join(
    f"resources{number}=CUSTOM_NIC:1" for number in range(1, 9)
)


def uuid(number: int) -> str:
    """Return the UUID of a provider."""
    return f"00000000-0000-4000-8000-{number:012d}"


@pytest.fixture
def wide(api: Client) -> Client:
    """Return a client of one tree with more candidates than a response may have."""
    api.ask("PUT", "/resource_classes/CUSTOM_NIC")
    api.provider(uuid(0))
    for number in range(1, CHILDREN + 1):
        api.provider(uuid(number), parent=uuid(0), CUSTOM_NIC=1)
    return api


class Reader:
    """A client that reads only as many parts of a response as the test permits."""

    def __init__(self, client: Client, target: str) -> None:
        self.scope: Scope = client._scope(
            "GET", target, {"x-auth-token": "admin", "openstack-api-version": "placement 1.39"}
        )
        self.aborted = False
        self.scope[ABORT] = self._abort
        self.sent: list[Message] = []
        self.reads = asyncio.Semaphore(0)
        """One for each part of the response that may be read."""
        self.stalls = asyncio.Event()
        """Set while the server waits for this client."""
        self.left = asyncio.Event()
        self.task = asyncio.create_task(client.face(self.scope, self._receive, self._send))

    def _abort(self) -> None:
        self.aborted = True

    async def _receive(self) -> Message:
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        if self.reads.locked():
            self.stalls.set()
        await self.reads.acquire()
        self.sent.append(message)

    async def read_until_stalled(self, parts: int) -> None:
        """Read this many parts; return when the server waits for more to be read."""
        self.stalls.clear()
        for _ in range(parts):
            self.reads.release()
        await asyncio.wait_for(self.stalls.wait(), 60)

    async def read_all(self) -> bytes:
        """Read the complete response."""
        for _ in range(10_000):
            self.reads.release()
        await asyncio.wait_for(self.task, 60)
        start, *parts = self.sent
        assert start["status"] == 200 and not parts[-1]["more_body"]
        return b"".join(part["body"] for part in parts)


def test_a_slow_reader_does_not_keep_the_whole_answer(wide: Client) -> None:
    """While a client reads the beginning of 97 MB, the process holds at most a fifth of that."""

    async def steps() -> None:
        gc.collect()
        tracemalloc.start()
        try:
            before, _ = tracemalloc.get_traced_memory()
            reader = Reader(wide, QUESTION)
            await reader.read_until_stalled(4)
            held = tracemalloc.get_traced_memory()[0] - before
        finally:
            tracemalloc.stop()
        unsent = wide.service.unsent
        taken = unsent.bytes
        body = await reader.read_all()
        assert len(json.loads(body)["allocation_requests"]) == 100_000
        assert held < len(body) / 5, f"{held} bytes in memory of {len(body)}"
        assert held / 2 < taken < held * 2, "the counted bytes must be close to the memory in use"
        assert unsent.bytes == 0

    wide.run(steps())


@pytest.mark.parametrize("ending", ["leaves", "is cancelled"])
def test_memory_of_an_unfinished_response_is_freed(wide: Client, ending: str) -> None:
    """However a partly read response ends, none of it is kept."""

    async def steps() -> None:
        reader = Reader(wide, QUESTION)
        await reader.read_until_stalled(3)
        assert wide.service.unsent.bytes > WHOLE_BYTES_MAX
        if ending == "leaves":
            reader.left.set()
            for _ in range(3):
                reader.reads.release()
            await asyncio.wait_for(reader.task, 60)
        else:
            reader.task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reader.task
        # A request may also be refused during its response, because its body never ends. The part
        # sent to an HTTP/1.0 client must not look complete.
        assert reader.aborted
        assert wide.service.unsent.bytes == 0
        assert len(reader.sent) < 10

    wide.run(steps())


def test_a_response_beyond_the_limit_is_refused(wide: Client) -> None:
    """The second of two long responses is a 503 with Retry-After; short ones are still sent."""

    async def steps() -> None:
        unsent = wide.service.unsent = UnsentMemory(2 * WHOLE_BYTES_MAX)
        first = Reader(wide, QUESTION)
        await first.read_until_stalled(3)
        second = await wide.ask_async("GET", QUESTION)
        assert second.status == 503 and second.headers["retry-after"] == "1"
        assert "still being read" in second.detail
        assert unsent.refused == 1
        short = await wide.ask_async("GET", QUESTION + "&limit=10")
        assert short.status == 200 and len(short.json["allocation_requests"]) == 10
        await first.read_all()
        again = await wide.ask_async("GET", QUESTION)
        assert again.status == 200 and unsent.bytes == 0

    wide.run(steps())


def test_a_single_response_is_always_sent() -> None:
    """A response that is larger than the limit is sent if there is no other."""
    unsent = UnsentMemory(10)
    unsent.take(11)
    with pytest.raises(Error) as refusal:
        unsent.take(1)
    assert refusal.value.code is Code.OVERLOADED
    unsent.give_back(11)
    unsent.take(5)
    unsent.take(5)


async def read_now() -> None:
    """Read immediately."""


async def read_never() -> None:
    """Read nothing."""
    await asyncio.Event().wait()


class Sending:
    """A response of ten pieces of 64 KiB on its way to a client."""

    def __init__(self, pieces: Iterator[bytes] | None = None) -> None:
        self.aborts = 0
        self.head: Message | None = None
        self.sent: list[Message] = []
        rest = iter([bytes(module.SENT_BYTES)] * 10) if pieces is None else pieces
        self.answer = LongAnswer(deque(), rest, 1, UnsentMemory())

    def run(
        self,
        read: Callable[[], Awaitable[None]],
        read_head: Callable[[], Awaitable[None]] = read_now,
    ) -> None:
        """Send it to a client that awaits `read` for each piece, and `read_head` for the head."""

        async def send(message: Message) -> None:
            if message is start:
                await read_head()
                self.head = message
                return
            await read()
            self.sent.append(message)

        async def receive() -> Message:
            await asyncio.Event().wait()
            raise AssertionError

        async def turn() -> None:
            pass

        def abort() -> None:
            self.aborts += 1

        scope: Scope = {"path": "/", ABORT: abort}
        start: Message = {"type": "http.response.start", "status": 200, "headers": []}
        run(lambda _: long_send(start, self.answer, scope, receive, send, turn))


async def read_slowly() -> None:
    """Take four seconds."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    loop.advance(4.0)
    await turns()


def test_a_client_that_reads_too_slowly_is_disconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    """The total rate counts, not only the time of each piece; a client at the minimum is served."""
    monkeypatch.setattr(module, "READ_RATE_MIN", 1 << 40)
    slow = Sending()
    slow.run(read_slowly)
    assert slow.aborts == 1 and 0 < len(slow.sent) < 10
    monkeypatch.setattr(module, "READ_RATE_MIN", module.SENT_BYTES // 4)
    steady = Sending()
    steady.run(read_slowly)
    assert steady.aborts == 0 and [each["more_body"] for each in steady.sent] == [True] * 10 + [
        False
    ]


def test_a_client_that_reads_nothing_is_disconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client is disconnected after the time for one piece; nothing is sent."""
    monkeypatch.setattr(module, "SEND_SECONDS_MAX", 0.05)
    silent = Sending()
    silent.run(read_never)
    assert silent.aborts == 1 and silent.head and not silent.sent


def test_a_client_that_leaves_earlier_data_unread_is_disconnected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The head waits for earlier responses: leaving those unread must not occupy memory."""
    monkeypatch.setattr(module, "SEND_SECONDS_MAX", 0.05)
    silent = Sending()
    silent.run(read_now, read_never)
    assert silent.aborts == 1 and not silent.head and not silent.sent


def test_an_exception_aborts_a_long_answer() -> None:
    """An exception within a response aborts the connection, so that it does not look complete."""

    def faulty() -> Iterator[bytes]:
        yield bytes(module.SENT_BYTES)
        raise ZeroDivisionError

    sending = Sending(faulty())
    with pytest.raises(ZeroDivisionError):
        sending.run(read_now)
    assert sending.aborts == 1
    assert [each["more_body"] for each in sending.sent] == [True]
