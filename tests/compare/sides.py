"""The two sides: the original and Moorage, each a separate server on an empty database."""

import asyncio
import contextlib
import os
import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tests.compare.generate.requests import Ask, Generations, plain
from tests.compare.judge.differences import MODIFIED
from tests.e2e.support.peer import Answer, Peer, head
from tests.e2e.support.server import Server, serve

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".venv-conformance/bin/python"
ORIGINAL = Path(__file__).with_name("original.py")
READY = re.compile(r"original: serving (?P<url>\S+)")
RESET_ORIGINAL = head("POST", "/_original/reset", [], b"")
RESET_OURS = head("POST", "/_testing/reset", [], b"{}")
FORGET_ORPHANS = head("POST", "/_original/orphans", [], b"")
STANDARD_TRAIT = plain("GET", "/traits/HW_CPU_X86_AVX2")
GENERATIONS = head("GET", "/_original/generations", [], None)


class Absent(Exception):
    """The environment with the original is missing; the message says how to create it."""


@contextlib.contextmanager
def original(folder: Path, hashes: str = "0") -> Iterator[Server]:
    """Run the original with its database in a folder, which is created if it does not exist.

    `hashes` is its hash seed: some of its lists are in the order of a set, and runs must be
    repeatable.
    """
    if not PYTHON.exists():
        raise Absent(f"{PYTHON} does not exist: `make .venv-conformance/stamp` creates it")
    folder.mkdir(exist_ok=True)
    environment = {**os.environ, "PYTHONHASHSEED": hashes}
    with Server([str(PYTHON), "-P", str(ORIGINAL), str(folder)], environment, ready=READY) as it:
        yield it


@contextlib.contextmanager
def ours(database: Path | str) -> Iterator[Server]:
    """Run Moorage on a database."""
    options = ("--auth", "noauth2", "--testing", "--no-access-log")
    with serve(database, *options) as server:
        yield server


@dataclass(slots=True)
class Side:
    """A connection to one server; `original` is True for the original.

    `beginning` is the time of the standard names, when the database was created.
    """

    peer: Peer
    original: bool
    beginning: str = ""

    async def begin(self) -> None:
        """Read when the database was created."""
        answer = await self.peer.send(STANDARD_TRAIT.bytes(Generations()))
        self.beginning = answer.headers[MODIFIED]

    async def reset(self) -> None:
        """Empty the database."""
        request = RESET_ORIGINAL if self.original else RESET_OURS
        answer = await self.peer.send(request)
        assert answer.status in (200, 204), answer

    async def send(self, ask: Ask, request: bytes) -> Answer:
        """Send a request; `ask` is its symbolic form."""
        return await self.peer.send(request)

    async def forget_orphans(self) -> list[str]:
        """Remove and return the consumers that the original has left without allocations."""
        if not self.original:
            return []
        found: list[str] = (await self.peer.send(FORGET_ORPHANS)).json()
        return found


class Sides:
    """The original, and by name the servers compared with it: Moorage on some engines.

    To test the comparison itself, this may also be another original.
    """

    def __init__(self, original: Side, others: dict[str, Side]) -> None:
        self.original = original
        self.others = others

    @classmethod
    @contextlib.asynccontextmanager
    async def open(cls, original: str, others: dict[str, str]) -> AsyncIterator[Self]:
        """Connect to these URLs. A server whose name begins with `original` is an original."""
        async with contextlib.AsyncExitStack() as stack:
            first = Side(await stack.enter_async_context(Peer(original)), True)
            found = {}
            for name, url in others.items():
                peer = await stack.enter_async_context(Peer(url))
                found[name] = Side(peer, name.startswith("original"))
            both = cls(first, found)
            for side in both.all:
                await side.begin()
            yield both

    @property
    def all(self) -> list[Side]:
        """All sides, the original first."""
        return [self.original, *self.others.values()]

    async def reset(self) -> None:
        """Empty all databases."""
        await asyncio.gather(*(side.reset() for side in self.all))

    async def generations(self) -> Generations:
        """Return the original's generations."""
        return Generations(**(await self.original.peer.send(GENERATIONS)).json())

    async def send(self, ask: Ask, known: Generations) -> tuple[Answer, dict[str, Answer]]:
        """Send a request to all; return the original's answer and those of the others by name."""
        request = ask.bytes(known)
        first, *others = await asyncio.gather(*(side.send(ask, request) for side in self.all))
        return first, dict(zip(self.others, others, strict=True))

    async def forget_orphans(self) -> list[str]:
        """Remove and return the consumers that refused requests left behind in the original."""
        first, *_ = await asyncio.gather(*(side.forget_orphans() for side in self.all))
        return first
