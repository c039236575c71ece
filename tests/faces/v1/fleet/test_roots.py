"""An agent with its own token closes no machine but its own."""

import pytest

from tests.faces.v1.fleet.machine import Machine
from tests.faces.v1.fleet.test_enrolling import PLACEMENT, candidates
from tests.faces.v1.native import Native


def offering(native: Native, name: str, parent: str | None = None) -> str:
    """Create a provider with a VCPU, as Nova does; return it."""
    body = {"name": name, "parent_provider_uuid": parent}
    made = native.ask("POST", "/resource_providers", body, **PLACEMENT)
    assert made.status == 200, made
    uuid: str = made.body["uuid"]
    written = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 8}}}
    path = f"/resource_providers/{uuid}/inventories"
    assert native.ask("PUT", path, written, **PLACEMENT).status == 200
    return uuid


def test_a_provider_that_no_operator_has_given(native: Native) -> None:
    """Neither its first register nor its end changes what the machine of others offers."""
    thief = Machine(native)
    victim = offering(native, f"compute-{thief.host}")
    assert thief.put().status == 200
    before = candidates(native)
    refused = thief.register(root=victim)
    assert (refused.status, refused.body["code"]) == (409, "not_accepted")
    assert f"moorage agent root {thief.uuid} {victim}" in refused.body["detail"]
    assert thief.shown()["root"] is None
    thief.decommissioned()
    assert candidates(native) == before


@pytest.mark.parametrize("place", ["above", "root", "child", "part"])
def test_what_another_agent_manages(native: Native, place: str) -> None:
    """An operator may give it by mistake: it is refused, and closing it would close the other."""
    first, second = Machine(native), Machine(native)
    above = offering(native, f"rack-{first.host}")
    root = offering(native, f"compute-{first.host}", above)
    child = offering(native, f"numa-{first.host}", root)
    assert first.put(root=root).status == 200
    assert first.register(root=root).status == 200
    wanted = {"above": above, "root": root, "child": child, "part": first.part}[place]
    given = second.put(root=wanted)
    assert given.status == (409 if place == "root" else 200)
    assert given.status == 200 or second.put().status == 200
    before = candidates(native)
    refused = second.register(root=wanted)
    assert (refused.status, refused.body["code"]) == (409, "root_taken")
    assert first.uuid in refused.body["detail"]
    assert second.shown()["root"] is None
    second.decommissioned()
    assert candidates(native) == before
    first.decommissioned()
    third = Machine(native)
    assert third.put(root=wanted).status == 200
    assert third.register(root=wanted).status == 200


def test_the_provider_of_an_agent_that_has_not_come_yet(native: Native) -> None:
    """The provider with an agent's UUID is for that agent, even if another one comes first."""
    victim, thief = Machine(native), Machine(native)
    body = {"name": victim.host, "uuid": victim.uuid}
    assert native.ask("POST", "/resource_providers", body, **PLACEMENT).status == 200
    assert victim.put().status == thief.put().status == 200
    given = thief.send("PUT", "root", {"root": victim.uuid}, native.secret)
    assert (given.status, given.body["code"]) == (409, "root_taken")
    assert thief.register(root=victim.uuid).status == 409
    assert victim.register(root=victim.uuid).status == 200


def test_only_operators_give_roots(native: Native) -> None:
    """Not the agent with its own token."""
    machine = Machine(native)
    victim = offering(native, f"compute-{machine.host}")
    assert machine.put().status == 200
    assert machine.send("PUT", "root", {"root": victim}).status == 403
    assert machine.send("PUT", "", {"root": victim}).status == 403
    assert machine.shown()["given_root"] is None
    given = machine.send("PUT", "root", {"root": victim}, native.secret)
    assert given.body["given_root"] == victim
    rows = native.ask("GET", f"/v1/audit?target={machine.uuid}").body["entries"]
    assert rows[0]["action"] == "agent.root"
    assert rows[0]["after"]["given_root"] == victim
