"""A server and the tokens of an operator, an agent and an enroller; requests of one machine."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen
from uuid import UUID, uuid4, uuid5

from tests.e2e.support.server import Server, serve

AGENT = "5d4c1b1e-7f0a-4a63-9f0e-2f7c6b1d8a55"
NUMA0 = str(uuid5(UUID(AGENT), "numa0"))
PAGES = "CUSTOM_HUGEPAGES_2MB"
ELIGIBLE = 1_000


class Machine:
    """A server with its database in a folder, and one machine that sends what a test wants."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.server: Server = serve(folder / "m.sqlite", *options)
        self.admin = (folder / "m.sqlite.token").read_text().strip()
        self.agent = self.token("agent", "agent", AGENT)
        self.enroller = self.token("enroller", "group", "default")
        self.boot = "boot-1"

    def token(self, role: str, kind: str, name: str) -> str:
        """Create a token of a scoped role."""
        wanted = {"name": "machine", "role": role, "scope": {kind: [name]}}
        status, made = self.send("POST", "/v1/tokens", wanted)
        assert status == 201, made
        secret: str = made["token"]
        return secret

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        token: str | None = None,
        headers: Mapping[str, str] = {},
    ) -> tuple[int, Any]:
        """Send a request, as the administrator unless there is another token.

        Returns the status and the JSON of the answer.
        """
        given = {
            **headers,
            "X-Auth-Token": token or self.admin,
            "Content-Type": "application/json",
        }
        data = None if body is None else json.dumps(body).encode()
        request = Request(self.server.url + path, data, given, method=method)
        try:
            with urlopen(request) as answer:
                return answer.status, json.loads(answer.read() or b"null")
        except HTTPError as error:
            return error.code, json.loads(error.read())

    def create(self) -> None:
        """Create the agent, in service."""
        status, answer = self.send("PUT", f"/v1/agents/{AGENT}", {})
        assert status == 200, answer

    def register(
        self, headers: Mapping[str, str] = {}, token: str | None = None
    ) -> tuple[int, Any]:
        """Register the machine, as its agent unless there is another token."""
        path = f"/v1/agents/{AGENT}/register"
        classes = {PAGES: {"eligible": ELIGIBLE}}
        body = {
            "boot_id": self.boot,
            "facts": {"hostname": "machine-1"},
            "parts": [{"provider": NUMA0, "name": "numa0", "classes": classes}],
        }
        return self.send("POST", path, body, token or self.agent, headers)

    def report(self, generation: int, pages: int, **more: Any) -> tuple[int, Any]:
        """Report the pages of the machine, which has finished its first pass."""
        body = {
            "boot_id": self.boot,
            "report_generation": generation,
            "desired_generation_seen": 1,
            "phase": "done",
            "actual": {NUMA0: {PAGES: pages}},
            **more,
        }
        return self.send("PUT", f"/v1/agents/{AGENT}/report", body, self.agent)

    def desired(self, pages: int) -> None:
        """Set how many pages the machine should have."""
        body = {"resource_class": PAGES, "amount": pages, "reason": "test"}
        status, answer = self.send("POST", f"/v1/agents/{AGENT}/desired", body)
        assert status == 200, answer

    def claim(self, pages: int) -> tuple[str, int]:
        """Claim pages for a new consumer; return it and the status."""
        consumer = str(uuid4())
        body = {
            "allocations": {NUMA0: {"resources": {PAGES: pages}}},
            "project_id": "p",
            "user_id": "u",
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
        }
        version = {"OpenStack-API-Version": "placement 1.38"}
        status, _ = self.send("PUT", f"/allocations/{consumer}", body, headers=version)
        return consumer, status

    def may_start(self, consumer: str, wait: float = 0) -> dict[str, Any]:
        """Ask whether a consumer may start now, or wait until it may."""
        path = f"/v1/agents/{AGENT}/starts/{consumer}?boot_id={self.boot}&wait={wait:g}"
        status, answer = self.send("GET", path, None, self.agent)
        assert status == 200, answer
        found: dict[str, Any] = answer
        return found
