"""Agents that enroll by themselves: what they and their enrollers cannot do."""

from typing import Any
from uuid import UUID, uuid4, uuid5

from tests.faces.v1.native import Native

PLACEMENT = {"OpenStack_API_Version": "placement latest"}


def scoped(native: Native, role: str, **scope: list[str]) -> str:
    """Create a token of a scoped role; return its secret."""
    made = native.ask("POST", "/v1/tokens", {"name": role, "role": role, "scope": scope})
    assert made.status == 201, made
    secret: str = made.body["token"]
    return secret


def register_of(agent: str, root: str) -> dict[str, Any]:
    """Return the register of a machine below an existing provider."""
    part = {"provider": str(uuid5(UUID(agent), "numa0")), "name": "numa0", "classes": {}}
    return {"boot_id": "b", "facts": {"hostname": "h"}, "root": root, "parts": [part]}


def candidates(native: Native) -> int:
    """Return the number of places for one VCPU."""
    path = "/allocation_candidates?resources=VCPU:1"
    found: list[object] = native.ask("GET", path, **PLACEMENT).body["allocation_requests"]
    return len(found)


def test_an_enroller_closes_no_machine_of_others(native: Native) -> None:
    """Its agent cannot take a provider as root until an operator accepts it."""
    victim = native.provider("compute-1")
    written = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 8}}}
    path = f"/resource_providers/{victim}/inventories"
    assert native.ask("PUT", path, written, **PLACEMENT).status == 200
    enroller = scoped(native, "enroller", group=["rack-7"])
    agent = str(uuid4())
    path = f"/v1/agents/{agent}"
    made = native.ask("POST", f"{path}/enroll", {"group": "rack-7"}, token=enroller)
    secret = made.body["token"]
    refused = native.ask("POST", f"{path}/register", register_of(agent, victim), token=secret)
    assert (refused.status, refused.body["code"]) == (409, "not_accepted")
    assert candidates(native) == 1
    assert native.ask("POST", f"{path}/resume", {}).status == 200
    accepted = native.ask("POST", f"{path}/register", register_of(agent, victim), token=secret)
    assert accepted.status == 200, accepted
    assert candidates(native) == 1
