"""No request and no connection leaves reference cycles.

Only the garbage collector would free them, and cycles that exist when it freezes the index would
stay for ever (decision 0022).
"""

import asyncio
import gc
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.fleet import Fleet
from bench.loop import holding, probes
from bench.target import READY
from bench.wire import ask
from tests.serve import cycles, wire

REPEATED = 3
"""How often each request is sent: a cycle per request leaves that many objects of a type."""


class Server:
    """A server that reports the objects that it left in cycles."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._stdin, self._stdout = process.stdin, process.stdout
        self.url = next(found[1] for line in self._stdout if (found := READY.search(line)))

    def left(self) -> Counter[str]:
        """Return how many objects of each type were left in cycles since the last call."""
        self._stdin.write("\n")
        self._stdin.flush()
        for line in self._stdout:
            if line.startswith(cycles.PREFIX):
                return Counter(json.loads(line.removeprefix(cycles.PREFIX)))
        raise AssertionError("the server has ended")

    async def left_by(self, raw: bytes) -> Counter[str]:
        """Send a request on new connections; return the objects that each time leaves in cycles."""
        await ask(self.url, raw)
        self.left()
        for _ in range(REPEATED):
            await ask(self.url, raw)
        return Counter({name: n for name, n in self.left().items() if n >= REPEATED})


@contextmanager
def serve(directory: Path) -> Iterator[Server]:
    """Serve an empty ledger."""
    command = ["127.0.0.1:0", f"sqlite:///{directory}/m.sqlite", str(directory)]
    with subprocess.Popen(
        [sys.executable, "-m", "tests.serve.cycles", *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            yield Server(process)
        finally:
            process.terminate()


def test_no_request_leaves_cycles(tmp_path: Path) -> None:
    """This holds for every kind of request, granted or refused."""
    sizes = probes.Sizes.of(0)

    async def scenario(server: Server) -> dict[str, Counter[str]]:
        for requests in (
            probes.reports(Fleet("flat", 40)),
            probes.large_objects(sizes),
            probes.line(sizes),
        ):
            await holding.send_all(server.url, requests)
        return {
            f"{one.method} {one.route} ({one.what})": await server.left_by(one.raw)
            for one in probes.all_probes(sizes)
        }

    with serve(tmp_path) as server:
        found = asyncio.run(scenario(server))
    assert len(found) > 80
    assert "\n".join(f"{what}: {dict(left)}" for what, left in found.items() if left) == ""


def test_no_connection_leaves_cycles(tmp_path: Path) -> None:
    """This also holds if it sends half a request, none, or does not wait for its answer."""
    good = wire.request(b"GET", b"/resource_providers", close=False)
    with serve(tmp_path) as server:
        for sent in (b"", good[:30], b"NO HTTP\r\n\r\n", good, good * 5):
            server.left()
            for _ in range(REPEATED * 5):
                with wire.connect(server.url) as connection:
                    connection.sendall(sent)
            wire.talk(
                server.url, wire.request(b"GET", b"/")
            )  # the server accepts this after all of them
            assert max(server.left().values(), default=0) < REPEATED, sent


def test_a_planted_cycle_is_found() -> None:
    """A control: an object that refers to itself is found, once."""

    class Planted:
        def __init__(self) -> None:
            self.own = self

    try:
        cycles.left()
        Planted()
        assert cycles.left()["Planted"] == 1
        assert cycles.left()["Planted"] == 0
    finally:
        gc.enable()
