"""Thousands of agents from one process: raw HTTP on a few connections, cheap for the client.

Each agent has a token of its own and one part with some pages.
"""

import asyncio
import contextlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import cycle
from time import monotonic
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID, uuid4, uuid5

PAGES = "CUSTOM_HUGEPAGES_2MB"
THERE = 100
"""Pages of each machine; all are desired."""

BOOT = "boot-1"
GROUP = "load"
CONNECTIONS = 100
BEAT_SECONDS = 5.0

_LENGTH = re.compile(rb"(?i)content-length: (\d+)")


@dataclass
class Agent:
    """One agent; `beats` False: it has stopped. `heard_at`: its last accepted sign of life."""

    uuid: str = field(default_factory=lambda: str(uuid4()))
    token: str = ""
    beats: bool = True
    heard_at: float = 0.0

    @property
    def part(self) -> str:
        """The UUID of its part."""
        return str(uuid5(UUID(self.uuid), "numa0"))


class Connection:
    """A connection that stays open, and is opened again after a failure."""

    def __init__(self, url: str) -> None:
        self._where = urlsplit(url)
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def send(self, method: str, path: str, body: Any, token: str) -> tuple[int, Any]:
        """Send a request; return the status and the JSON. Status 0: nobody answers.

        As HTTP clients do, it tries again if the server has closed a connection that was idle.
        """
        reused = self._streams is not None
        answered = await self._try(_request(method, path, body, token))
        if answered is None and reused:
            answered = await self._try(_request(method, path, body, token))
        return answered or (0, None)

    async def _try(self, request: bytes) -> tuple[int, Any] | None:
        try:
            if self._streams is None:
                self._streams = await asyncio.open_connection(
                    self._where.hostname, self._where.port
                )
            reader, writer = self._streams
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            length = _LENGTH.search(head)
            content = await reader.readexactly(int(length[1])) if length else b""
            return int(head[9:12]), json.loads(content) if content else None
        except (OSError, EOFError):
            self.close()
            return None

    def close(self) -> None:
        """Close the connection; the next request opens it again."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


class AgentLoad:
    """A fleet of agents. `urls`: servers of the same database; agents are spread over them."""

    def __init__(self, urls: list[str], admin: str, count: int) -> None:
        self.urls = urls
        self.admin = admin
        self.agents = [Agent() for _ in range(count)]
        self.refused: list[tuple[int, Any]] = []
        self._beating: list[asyncio.Task[None]] = []
        self._stopped = asyncio.Event()

    async def begin(self) -> None:
        """Create all agents with their tokens, register them, and report what is there."""
        one = Connection(self.urls[0])
        desired = {"desired": {PAGES: {"amount": THERE}}}
        status, answer = await one.send("PUT", f"/v1/groups/{GROUP}", desired, self.admin)
        assert status == 200, answer
        one.close()
        await self._each(self._create)
        await self._each(self._register)
        await self._each(self._report)

    async def _each(self, step: Any) -> None:
        """Do one step for all agents, on all connections at once."""
        count = min(CONNECTIONS, len(self.agents))

        async def some(first: int) -> None:
            connection = Connection(self.urls[first % len(self.urls)])
            try:
                for agent in self.agents[first::count]:
                    await step(connection, agent)
            finally:
                connection.close()

        await asyncio.gather(*map(some, range(count)))

    async def _create(self, connection: Connection, agent: Agent) -> None:
        path = f"/v1/agents/{agent.uuid}"
        status, answer = await connection.send("PUT", path, {"group": GROUP}, self.admin)
        assert status == 200, answer
        wanted = {"name": "machine", "role": "agent", "scope": {"agent": [agent.uuid]}}
        status, answer = await connection.send("POST", "/v1/tokens", wanted, self.admin)
        assert status == 201, answer
        agent.token = answer["token"]

    async def _register(self, connection: Connection, agent: Agent) -> None:
        body = {
            "boot_id": BOOT,
            "facts": {"hostname": f"host-{agent.uuid}"},
            "parts": [
                {"provider": agent.part, "name": "numa0", "classes": {PAGES: {"eligible": 1_000}}}
            ],
        }
        path = f"/v1/agents/{agent.uuid}/register"
        status, answer = await connection.send("POST", path, body, agent.token)
        assert status == 200, answer

    async def _report(self, connection: Connection, agent: Agent) -> None:
        body = {
            "boot_id": BOOT,
            "report_generation": 1,
            "desired_generation_seen": 1,
            "phase": "done",
            "actual": {agent.part: {PAGES: THERE}},
        }
        path = f"/v1/agents/{agent.uuid}/report"
        status, answer = await connection.send("PUT", path, body, agent.token)
        assert status == 200, answer
        agent.heard_at = monotonic()

    async def beat_once(self) -> None:
        """Send a sign of life of every agent, as fast as the server answers."""
        await self._each(self._alive)

    def beat(self) -> None:
        """Let every agent send a sign of life every 5 seconds, evenly spread, until `stop`."""
        self._stopped.clear()
        count = min(CONNECTIONS, len(self.agents))
        self._beating = [
            asyncio.create_task(self._beats(first, self.agents[first::count]))
            for first in range(count)
        ]

    async def runs(self, seconds: float) -> None:
        """Let the agents send signs of life for some time."""
        ended, _ = await asyncio.wait(self._beating, timeout=seconds)
        assert not ended, [*map(asyncio.Task.result, ended)]

    async def stop(self) -> None:
        """End all signs of life."""
        self._stopped.set()
        await asyncio.gather(*self._beating)

    async def _beats(self, first: int, agents: list[Agent]) -> None:
        server = first
        connection = Connection(self.urls[server % len(self.urls)])
        pause = BEAT_SECONDS / len(agents)
        due = monotonic() + pause * (first % CONNECTIONS) / CONNECTIONS
        try:
            for agent in cycle(agents):
                due += pause
                if await self._ends_before(due):
                    return
                if agent.beats and not await self._alive(connection, agent):
                    server += 1  # as a load balancer, use another one
                    connection = Connection(self.urls[server % len(self.urls)])
        finally:
            connection.close()

    async def _ends_before(self, due: float) -> bool:
        """Return whether all signs of life end before a time."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stopped.wait(), due - monotonic())
        return self._stopped.is_set()

    async def _alive(self, connection: Connection, agent: Agent) -> bool:
        """Send a sign of life; return whether the server is there."""
        path = f"/v1/agents/{agent.uuid}/alive"
        body = {"boot_id": BOOT, "report_generation": 1}
        sent = monotonic()
        status, answer = await connection.send("POST", path, body, agent.token)
        if status == 200:
            agent.heard_at = sent
        elif status:
            self.refused.append((status, answer))
        return status != 0

    async def silent(self, liveness: str, url: str) -> set[str]:
        """Return the agents of a liveness, as a server shows them; none if it does not answer."""
        connection, found, cursor = Connection(url), set(), ""
        while True:
            path = f"/v1/agents?liveness={liveness}&limit=1000{cursor}"
            status, page = await connection.send("GET", path, None, self.admin)
            if status == 0:
                return set()
            assert status == 200, page
            found |= {agent["id"] for agent in page["agents"]}
            if page["next"] is None:
                connection.close()
                return found
            cursor = f"&cursor={page['next']}"


def _request(method: str, path: str, body: Any, token: str) -> bytes:
    content = b"" if body is None else json.dumps(body).encode()
    return (
        f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Auth-Token: {token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
    ).encode() + content


def percentile(values: Iterable[float], share: float) -> float:
    """Return the value below which a share of the values are."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
