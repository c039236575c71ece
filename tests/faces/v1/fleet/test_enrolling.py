"""Agents that enroll by themselves: what they and their enrollers cannot do."""

from typing import Any
from uuid import UUID, uuid4, uuid5

from tests.faces.v1.fleet.machine import Machine
from tests.faces.v1.native import Native, Response

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
    assert (accepted.status, accepted.body["code"]) == (409, "not_accepted")
    assert native.ask("PUT", f"{path}/root", {"root": victim}).status == 200
    accepted = native.ask("POST", f"{path}/register", register_of(agent, victim), token=secret)
    assert accepted.status == 200, accepted
    assert candidates(native) == 1


class Enrolled(Machine):
    """A machine whose agent has enrolled, and has not been accepted."""

    def __init__(self, native: Native) -> None:
        super().__init__(native)
        enroller = scoped(native, "enroller", group=["rack-7"])
        made = self.send("POST", "enroll", {"group": "rack-7"}, enroller)
        assert made.status == 201, made

    def provider(self) -> Response:
        """Return what Placement says of the provider with its UUID."""
        return self.native.ask("GET", f"/resource_providers/{self.uuid}", **PLACEMENT)


def test_no_provider_before_it_is_accepted(native: Native) -> None:
    """Its hostname and its UUID stay free for those whose they are; then it gets both at once."""
    machine = Enrolled(native)
    assert machine.register().status == 200
    assert machine.report(actual={machine.part: {"CUSTOM_HUGEPAGES_2MB": 0}}).status == 200
    assert machine.provider().status == 404
    assert machine.operate("drain", reason="looking at it", lasts=3600).status == 200
    assert machine.register().status == 200
    assert machine.provider().status == 404
    assert machine.operate("resume").body["accepted"] is True
    assert machine.provider().body["name"] == machine.host
    part = native.ask("GET", f"/resource_providers/{machine.part}", **PLACEMENT)
    assert part.body["name"] == f"{machine.host}_numa0"


def test_a_name_that_somebody_needs(native: Native) -> None:
    """A compute node gets the name that an enrolled agent claims; operators learn of the clash."""
    machine = Enrolled(native)
    assert machine.register().status == 200
    taken = native.provider(machine.host)
    refused = machine.operate("resume")
    assert (refused.status, refused.body["code"]) == (409, "duplicate_provider")
    for word in (taken, machine.host, "Rename or delete", "moorage agent create"):
        assert word in refused.body["detail"]
    assert machine.shown()["accepted"] is False
    assert native.ask("DELETE", f"/resource_providers/{taken}", **PLACEMENT).status == 204
    assert machine.operate("resume").status == 200


def test_a_uuid_that_somebody_needs(native: Native) -> None:
    """A compute node is created with the UUID that an enrolled agent has, and stays open."""
    machine = Enrolled(native)
    assert machine.register().status == 200
    before = candidates(native)
    body = {"name": machine.host, "uuid": machine.uuid}
    assert native.ask("POST", "/resource_providers", body, **PLACEMENT).status == 200
    written = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 8}}}
    path = f"/resource_providers/{machine.uuid}/inventories"
    assert native.ask("PUT", path, written, **PLACEMENT).status == 200
    assert candidates(native) == before + 1
    refused = machine.register(root=machine.uuid)
    assert (refused.status, refused.body["code"]) == (409, "not_accepted")
    assert machine.operate("resume").status == 200
    assert candidates(native) == before + 1
    assert machine.register(root=machine.uuid).status == 200
    assert machine.operate("expunge").status == 200
    assert candidates(native) == before
