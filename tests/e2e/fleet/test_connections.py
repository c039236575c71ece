"""How agents reach the server: encrypted or on this host; signs of life are not logged."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen
from uuid import UUID, uuid5

import pytest

from moorage.wire.fleet import AliveAnswer
from tests.e2e.support.server import Server, serve

AGENT = "5d4c1b1e-7f0a-4a63-9f0e-2f7c6b1d8a55"
NUMA0 = str(uuid5(UUID(AGENT), "numa0"))
PAGES = "CUSTOM_HUGEPAGES_2MB"
ELSEWHERE = {"X-Forwarded-For": "192.0.2.7"}
"""What a trusted proxy on this host adds to the request of another host."""

ENCRYPTED = {**ELSEWHERE, "X-Forwarded-Proto": "https"}
PROXY = ("--trusted-proxies", "127.0.0.1")
FACTS = {
    "boot_id": "boot-1",
    "facts": {"hostname": "h"},
    "parts": [{"provider": NUMA0, "name": "numa0", "classes": {PAGES: {"eligible": 8}}}],
}
ALIVE = {"boot_id": "boot-1", "report_generation": 0}


class Fleet:
    """A server, and the tokens of an operator, an agent and an enroller."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.server: Server = serve(folder / "m.sqlite", *options)
        self.admin = (folder / "m.sqlite.token").read_text().strip()
        self.agent = self.token("agent", "agent", AGENT)
        self.enroller = self.token("enroller", "group", "default")

    def token(self, role: str, kind: str, name: str) -> str:
        """Create a token of a scoped role."""
        wanted = {"name": "machine", "role": role, "scope": {kind: [name]}}
        status, made = self.send("POST", "/v1/tokens", self.admin, wanted)
        assert status == 201, made
        secret: str = made["token"]
        return secret

    def send(
        self, method: str, path: str, token: str, body: Any, headers: Mapping[str, str] = {}
    ) -> tuple[int, Any]:
        """Send a request; return the status and the JSON of the answer."""
        given = {**headers, "X-Auth-Token": token, "Content-Type": "application/json"}
        request = Request(self.server.url + path, json.dumps(body).encode(), given, method=method)
        try:
            with urlopen(request) as answer:
                return answer.status, json.loads(answer.read() or b"null")
        except HTTPError as error:
            return error.code, json.loads(error.read())

    def register(
        self, headers: Mapping[str, str] = {}, token: str | None = None
    ) -> tuple[int, Any]:
        """Register the machine."""
        path = f"/v1/agents/{AGENT}/register"
        return self.send("POST", path, token or self.agent, FACTS, headers)


def test_an_agent_of_another_host_needs_encryption(tmp_path: Path) -> None:
    """Its token is refused on a plain connection, whatever it asks for; on this host it works."""
    fleet = Fleet(tmp_path, *PROXY)
    with fleet.server:
        enroll = ("POST", f"/v1/agents/{AGENT}/enroll", fleet.enroller, {"group": "default"})
        status, refusal = fleet.send(*enroll, ELSEWHERE)
        assert (status, refusal["code"]) == (403, "encryption_required")
        assert "--insecure-agents" in refusal["detail"]
        assert fleet.send(*enroll, ENCRYPTED)[0] == 201
        for headers in (ELSEWHERE, {"X-Forwarded-For": "fd00::1", "X-Forwarded-Proto": "http"}):
            status, refusal = fleet.register(headers)
            assert (status, refusal["code"]) == (403, "encryption_required")
        assert (
            fleet.register(ELSEWHERE, fleet.admin)[0] == 200
        )  # an operator's is a matter of its own
        assert fleet.register(ENCRYPTED)[0] == 200
        assert fleet.register()[0] == 200


def test_agents_may_be_permitted_without_encryption(tmp_path: Path) -> None:
    """`--insecure-agents` is for networks that the operator trusts."""
    fleet = Fleet(tmp_path, *PROXY, "--insecure-agents")
    with fleet.server:
        assert fleet.send("PUT", f"/v1/agents/{AGENT}", fleet.admin, {})[0] == 200
        assert fleet.register(ELSEWHERE)[0] == 200


def test_only_failed_signs_of_life_are_logged(tmp_path: Path) -> None:
    """A fleet sends thousands a second; a refused one, and any other request, has its line."""
    fleet = Fleet(tmp_path)
    with fleet.server as server:
        assert fleet.send("PUT", f"/v1/agents/{AGENT}", fleet.admin, {})[0] == 200
        assert fleet.register()[0] == 200
        alive = f"/v1/agents/{AGENT}/alive"
        status, answer = fleet.send("POST", alive, fleet.agent, ALIVE)
        assert (status, set(answer)) == (200, set(AliveAnswer.__annotations__))
        assert fleet.send("POST", alive, fleet.agent, {**ALIVE, "boot_id": "b"})[0] == 409
        fleet.send("GET", "/v1/agents", fleet.admin, None)
        server.wait_for('"GET /v1/agents" 200')
        (line,) = [line for line in server.said if f'"POST {alive}"' in line]
        assert f'"POST {alive}" 409' in line


@pytest.mark.parametrize("ttl", [12, 30])
def test_the_ttl_is_a_setting(tmp_path: Path, ttl: int) -> None:
    """A small fleet has the smallest TTL; the next sign of life is due after half of it."""
    fleet = Fleet(tmp_path, "--fleet-ttl-min", str(ttl))
    with fleet.server:
        assert fleet.send("PUT", f"/v1/agents/{AGENT}", fleet.admin, {})[0] == 200
        _, answer = fleet.register()
        assert answer["ttl"] == ttl
        assert 0.45 * ttl <= answer["next_in"] <= 0.55 * ttl
