"""How agents reach the server: encrypted or on this host; signs of life are not logged."""

from pathlib import Path

import pytest

from moorage.wire.fleet import AliveAnswer
from tests.e2e.support.machine import AGENT, Machine

ELSEWHERE = {"X-Forwarded-For": "192.0.2.7"}
"""What a trusted proxy on this host adds to the request of another host."""

ENCRYPTED = {**ELSEWHERE, "X-Forwarded-Proto": "https"}
PROXY = ("--trusted-proxies", "127.0.0.1")
ALIVE = {"boot_id": "boot-1", "report_generation": 0}


def test_an_agent_of_another_host_needs_encryption(tmp_path: Path) -> None:
    """Its token is refused on a plain connection, whatever it asks for; on this host it works."""
    machine = Machine(tmp_path, *PROXY)
    with machine.server:
        enroll = ("POST", f"/v1/agents/{AGENT}/enroll", {"group": "default"}, machine.enroller)
        status, refusal = machine.send(*enroll, ELSEWHERE)
        assert (status, refusal["code"]) == (403, "encryption_required")
        assert "--insecure-agents" in refusal["detail"]
        assert machine.send(*enroll, ENCRYPTED)[0] == 201
        for headers in (ELSEWHERE, {"X-Forwarded-For": "fd00::1", "X-Forwarded-Proto": "http"}):
            status, refusal = machine.register(headers)
            assert (status, refusal["code"]) == (403, "encryption_required")
        assert (
            machine.register(ELSEWHERE, machine.admin)[0] == 200
        )  # an operator's is a matter of its own
        assert machine.register(ENCRYPTED)[0] == 200
        assert machine.register()[0] == 200


def test_agents_may_be_permitted_without_encryption(tmp_path: Path) -> None:
    """`--insecure-agents` is for networks that the operator trusts."""
    machine = Machine(tmp_path, *PROXY, "--insecure-agents")
    with machine.server:
        machine.create()
        assert machine.register(ELSEWHERE)[0] == 200


def test_only_failed_signs_of_life_are_logged(tmp_path: Path) -> None:
    """A fleet sends thousands a second; a refused one, and any other request, has its line."""
    machine = Machine(tmp_path)
    with machine.server as server:
        machine.create()
        assert machine.register()[0] == 200
        alive = f"/v1/agents/{AGENT}/alive"
        status, answer = machine.send("POST", alive, ALIVE, machine.agent)
        assert (status, set(answer)) == (200, set(AliveAnswer.__annotations__))
        assert machine.send("POST", alive, {**ALIVE, "boot_id": "b"}, machine.agent)[0] == 409
        machine.send("GET", "/v1/agents")
        server.wait_for('"GET /v1/agents" 200')
        (line,) = [line for line in server.said if f'"POST {alive}"' in line]
        assert f'"POST {alive}" 409' in line


@pytest.mark.parametrize("ttl", [12, 30])
def test_the_ttl_is_a_setting(tmp_path: Path, ttl: int) -> None:
    """A small fleet has the smallest TTL; the next sign of life is due after half of it."""
    machine = Machine(tmp_path, "--fleet-ttl-min", str(ttl))
    with machine.server:
        machine.create()
        _, answer = machine.register()
        assert answer["ttl"] == ttl
        assert 0.45 * ttl <= answer["next_in"] <= 0.55 * ttl
