"""A proxy before a real server, behind which every provider has an agent.

It forwards all bytes unchanged. Before and after a write it lets the agents of the providers do
what agents do; the client waits meanwhile. Standard library only: other environments use it.
"""

import contextlib
import socket
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from tests.support.agents.machines import OFFERED, PROVIDERS, Machines, told
from tests.support.agents.messages import CHUNK, Message, Opaque, Reader
from tests.support.suites import print_line

READS = ("GET", "HEAD", "OPTIONS")
ALL, NOTHING = OFFERS = ("all", "nothing")
"""What agents offer. With nothing a suite must fail: otherwise it proves nothing about agents."""


class Proxy:
    """Forwards connections to a server. `url` is its address, `machines` are the agents.

    `offer` is what the agents offer: OFFERS.
    """

    def __init__(self, url: str, offer: str = ALL) -> None:
        parts = urlsplit(url)
        self._target = (parts.hostname, parts.port)
        self.machines = Machines(url, gives=offer == ALL)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        self.machines.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._listener.close()
        self.machines.stop()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        """Forward the requests of one connection until either side closes it."""
        with client, suppress(OSError), socket.create_connection(self._target) as server:
            for side in (client, server):
                side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            requests, answers = Reader(client), Reader(server)
            try:
                while (request := requests.request()) is not None:
                    answer = self._exchanged(request, server, answers)
                    if answer is None:
                        return
                    client.sendall(answer.data)
            except Opaque as message:
                self._pumped(message.data, client, server)

    def _exchanged(
        self, request: Message, server: socket.socket, answers: Reader
    ) -> Message | None:
        if request.method in READS:
            return _sent(request, server, answers)
        with self.machines.turn:
            self.machines.before(request)
            answer = _sent(request, server, answers)
            return None if answer is None else self.machines.after(request, answer)

    def _pumped(self, data: bytes, client: socket.socket, server: socket.socket) -> None:
        """Forward what is no request as one stream, in both directions."""
        server.sendall(data)
        threading.Thread(target=_pump, args=(client, server), daemon=True).start()
        _pump(server, client)


def _sent(request: Message, server: socket.socket, answers: Reader) -> Message | None:
    with suppress(OSError):  # it may have answered already, and closed
        server.sendall(request.data)
    return answers.answer(request.method)


def _pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(CHUNK):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


@contextlib.contextmanager
def proxies(urls: Sequence[str], offer: str | None) -> Iterator[list[Proxy]]:
    """Start a proxy before each server; without an offer there are none."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(Proxy(url, offer)) for url in urls if offer is not None]


def proved(running: Sequence[Proxy]) -> bool:
    """Print what the agents did; return whether it was what they should do."""
    if not running:
        return True
    machines = [one.machines for one in running]
    counts = sum((one.counts for one in machines), Counter[str]())
    problems = [problem for one in machines for problem in one.problems]
    print_line(f"agents: {told(counts)}")
    for problem in problems:
        print_line(f"FAILED agents: {problem}")
    offering = any(one.gives for one in machines)
    return not problems and bool(counts[PROVIDERS]) and bool(counts[OFFERED]) is offering


@contextlib.contextmanager
def empty_handed(running: Sequence[Proxy]) -> Iterator[None]:
    """Let the agents offer nothing meanwhile."""
    for one in running:
        one.machines.gives = False
    try:
        yield
    finally:
        for one in running:
            one.machines.gives = True
