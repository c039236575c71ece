"""Passes of one reporter: what changes in Ironic is in the ledger after the next one."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic

import pytest

from moorage.client.transport import RefusedError, UnreachableError
from moorage.integrations.ironic.report import reporter as module
from moorage.integrations.ironic.report import sending
from moorage.integrations.ironic.report.membership import FencedError
from moorage.integrations.report_api import ReportApi
from moorage.wire.reporting import NodeOutcomes, PinsWanted
from tests.integrations.ironic.report.world import (
    CLASS,
    CONDUCTORS,
    GROUP,
    TTL,
    World,
    played,
    whole,
)
from tests.support.ironic_double.faults import Fault

CONSUMER = "c0000000-0000-4000-8000-000000000001"
NODES = 30


def allocate(it: World, *numbers: int) -> None:
    """Let a consumer have these nodes, by the Placement API; none: it ends."""
    held = {it.node(number).uuid: {"resources": {CLASS: 1}} for number in numbers}
    body = {
        "allocations": held,
        "project_id": "p",
        "user_id": "u",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }
    content = json.dumps(body).encode() if held else None
    it.placement("PUT" if held else "DELETE", f"/allocations/{CONSUMER}", content)


@played(NODES)
async def test_all_nodes(it: World) -> None:
    """Everything is reported; once more, nothing is written."""
    it.node(3).members["resource_class"] = None
    it.node(4).members["traits"] = ["CUSTOM_RACK_7"]
    async with it.reporter() as reporter:
        await whole(reporter)
        held = it.providers()
        assert len(held) == NODES - 1
        assert it.node(3).uuid not in held
        assert held[it.node(4).uuid].reported == {GROUP: ["CUSTOM_RACK_7"]}
        assert (reporter.progress.own, reporter.progress.unclassed) == (NODES, 1)
        before = it.cursor()
        await whole(reporter)
        assert it.changes(before, "provider", "inventory", "tags") == []
        (member,) = it.reporting.group(GROUP).members
        assert member.last_pass is not None
        assert member.last_pass.nodes == NODES - 1


@played(NODES)
async def test_what_changes(it: World) -> None:
    """A pass finds each kind of change without reading all nodes; the ledger follows."""
    async with it.reporter() as reporter:
        await whole(reporter)
        lists = it.double.counts["list"]
        it.change(1, maintenance=True)
        it.change(2, traits=["CUSTOM_GPU"])
        it.change(3, instance_uuid=CONSUMER)
        it.change(4, resource_class="gold")
        it.node(5).power = "error"
        it.change(5)
        added = it.double.fleet.add(
            {"name": "new", "driver": "fake-hardware", "resource_class": "baremetal"}, "available"
        )
        assert await reporter.tick()
        assert it.double.counts["list"] == lists + 2
        held = it.providers()
        assert [it.reserved(number) for number in (1, 2, 3, 5, 6)] == [1, 0, 1, 1, 0]
        assert held[it.node(2).uuid].traits == ["CUSTOM_GPU"]
        assert list(held[it.node(4).uuid].inventories) == ["CUSTOM_GOLD"]
        assert held[added.uuid].inventories[CLASS].reserved == 1
        it.change(1, maintenance=False)
        assert await reporter.tick()
        assert it.reserved(1) == 0


@played(3)
async def test_a_cleaned_node_is_a_candidate_again(it: World) -> None:
    """The pass after Ironic has cleaned a node frees it."""
    async with it.reporter() as reporter:
        await whole(reporter)
        node = it.node(1)
        it.double.fleet.ask(node, "deploy", [])
        await it.double.advance(300.0)
        assert await reporter.tick()
        assert (node.state, it.reserved(1)) == ("active", 1)
        it.double.fleet.ask(node, "delete", [])
        await it.double.advance(60.0)
        assert await reporter.tick()
        assert (node.state, it.reserved(1)) == ("cleaning", 1)
        await it.double.advance(60.0)
        assert await reporter.tick()
        assert (node.state, it.reserved(1)) == ("available", 0)


@played(NODES)
async def test_only_404_counts(it: World) -> None:
    """A node that a list omits stays; one of which Ironic says that there is none is removed."""
    async with it.reporter() as reporter:
        await whole(reporter)
        hidden, gone = it.node(1), it.node(2)
        it.double.fleet.hidden.add(hidden.uuid)
        it.double.fleet.remove(gone)
        await whole(reporter)
        held = it.providers()
        assert hidden.uuid in held
        assert gone.uuid not in held
        assert len(held) == NODES - 1


@played(NODES)
async def test_an_error_is_no_evidence(it: World) -> None:
    """If Ironic fails when it is asked for a missing node, nothing is removed."""
    async with it.reporter() as reporter:
        await whole(reporter)
        gone = it.node(2)
        it.double.fleet.remove(gone)
        it.double.faults.pending.append(Fault("read", answer=500))
        reporter.read_all_soon()
        assert await reporter.tick()
        await reporter.read_all_done()
        assert reporter.progress.full_trouble is not None
        assert gone.uuid in it.providers()
        await whole(reporter)
        assert gone.uuid not in it.providers()


def remove_many(it: World) -> None:
    """Delete more nodes than a reporter believes to be gone at once."""
    for number in range(1, module.GONE_MIN + 2):
        it.double.fleet.remove(it.node(number))


@played(NODES)
async def test_many_gone(it: World) -> None:
    """If most nodes are gone, as after a mistake in permissions, none is removed."""
    async with it.reporter() as reporter:
        await whole(reporter)
        remove_many(it)
        reporter.read_all_soon()
        assert await reporter.tick()
        await reporter.read_all_done()
        assert "nodes are gone" in str(reporter.progress.full_trouble)
        assert len(it.providers()) == NODES


@played(3)
async def test_deleted_while_no_reporter_ran(it: World) -> None:
    """A new process asks for what the group has reported and Ironic does not list."""
    async with it.reporter() as reporter:
        await whole(reporter)
    deleted, hidden = it.node(1), it.node(2)
    it.double.fleet.remove(deleted)
    it.double.fleet.hidden.add(hidden.uuid)
    async with it.reporter() as reporter:
        await whole(reporter)
    assert it.providers().keys() == it.double.fleet.nodes.keys()


@played(3)
async def test_deleted_before_it_was_sent(it: World) -> None:
    """A node that still was to be sent, and is then found to be gone, is forgotten altogether."""
    async with it.reporter() as reporter:
        await whole(reporter)
        hidden = it.node(2)
        it.double.fleet.hidden.add(hidden.uuid)
        await whole(reporter)  # asks for it, and leaves it to the next pass
        it.double.fleet.remove(hidden)
        assert await reporter.once()
        assert hidden.uuid not in it.providers()
        assert await reporter.tick(), reporter.progress.trouble
        assert hidden.uuid not in it.providers()


@played(3)
async def test_gone_but_refused(it: World) -> None:
    """A node whose absence is refused is reported again, also by a process that never saw it."""
    async with it.reporter() as reporter:
        await whole(reporter)
    gone = it.node(1)
    child = {"uuid": CONSUMER, "name": "child", "parent": gone.uuid}
    it.admin.request("POST", "/v1/providers:bulk", {"providers": [child]})
    it.double.fleet.remove(gone)
    async with it.reporter() as reporter:
        await whole(reporter)
        it.change(2, maintenance=True)
        with lost_reports():
            assert not await reporter.tick()
        assert await reporter.tick(), reporter.progress.trouble
        assert it.reserved(2) == 1
        assert gone.uuid in it.providers()


@played(3)
async def test_gone_is_not_reported_as_present(it: World) -> None:
    """Once Ironic has said that there is no such node, nothing that was read before is sent."""
    async with it.reporter() as reporter:
        await whole(reporter)
        gone = it.node(1)
        child = {"uuid": CONSUMER, "name": "child", "parent": gone.uuid}
        it.admin.request("POST", "/v1/providers:bulk", {"providers": [child]})
        it.double.fleet.remove(gone)
        await whole(reporter)  # its absence is refused
        for uuid in (CONSUMER, gone.uuid):
            it.placement("DELETE", f"/resource_providers/{uuid}")
        assert await reporter.tick(), reporter.progress.trouble
        assert gone.uuid not in it.providers()


@contextmanager
def lost_reports() -> Iterator[None]:
    """Lose all reports on their way."""
    real = ReportApi.report

    async def lost(*_: object) -> NodeOutcomes:
        raise UnreachableError("lost")

    ReportApi.report = lost  # type: ignore[assignment,method-assign] # as a net does that loses them
    try:
        yield
    finally:
        ReportApi.report = real  # type: ignore[method-assign] # as before


@played(NODES)
async def test_another_ironic(it: World) -> None:
    """A new process removes nothing if most of what the group has reported is not there."""
    async with it.reporter() as reporter:
        await whole(reporter)
    remove_many(it)
    async with it.reporter() as reporter:
        reporter.read_all_soon()
        assert await reporter.tick()
        await reporter.read_all_done()
        assert "check the address of Ironic" in str(reporter.progress.full_trouble)
    assert len(it.providers()) == NODES


@played(3)
async def test_a_ghost(it: World) -> None:
    """A node that is gone but allocated offers nothing; it is removed after the allocation."""
    async with it.reporter() as reporter:
        await whole(reporter)
        ghost = it.node(1)
        allocate(it, 1)
        it.double.fleet.remove(ghost)
        await whole(reporter)
        assert [*it.reporting.ghosts(GROUP)] == [ghost.uuid]
        assert it.providers()[ghost.uuid].inventories[CLASS].reserved == 1
        await whole(reporter)
        allocate(it)
        await whole(reporter)
        assert ghost.uuid not in it.providers()


@played(3)
async def test_outages(it: World) -> None:
    """What changed while Ironic or Moorage did not answer is reported by the next pass."""
    async with it.reporter() as reporter:
        await whole(reporter)
        it.change(1, maintenance=True)
        it.double.outage(1_000.0)
        assert not await reporter.tick()
        await it.double.advance(1_000.0)
        assert await reporter.tick()
        assert it.reserved(1) == 1


@played(3)
async def test_beside_nova(it: World) -> None:
    """Only reserved and total of what nova has created are written."""
    uuid = it.node(1).uuid
    nova = {
        "uuid": uuid,
        "name": uuid,
        "inventories": {CLASS: {"total": 1, "max_unit": 1, "reserved": 1}},
        "traits": ["OWNER_NOVA", "CUSTOM_NOVAS"],
    }
    done = it.admin.request(
        "POST", "/v1/providers:bulk", {"providers": [nova], "create_vocabulary": True}
    )
    assert done["created"] == 1, done
    it.node(1).members["traits"] = ["CUSTOM_GPU"]
    async with it.reporter(mode="beside_nova") as reporter:
        await whole(reporter)
        held = it.providers()
        assert [*held] == [uuid]
        assert it.reserved(1) == 0
        assert held[uuid].traits == ["CUSTOM_NOVAS", "OWNER_NOVA"]


@played(NODES)
async def test_pins(it: World) -> None:
    """A node that is pinned elsewhere is left alone; without the pin it is reported again."""
    async with it.reporter() as reporter:
        await whole(reporter)
        pinned = it.node(1)
        it.reporting.pin(GROUP, PinsWanted(nodes=[pinned.uuid], member="b"))
        it.change(1, maintenance=True)
        assert await reporter.tick()
        assert reporter.progress.own == NODES - 1
        assert it.reserved(1) == 0
        it.reporting.pin(GROUP, PinsWanted(nodes=[pinned.uuid], member=None))
        assert await reporter.tick()
        assert it.reserved(1) == 1


@played(3)
async def test_fenced(it: World) -> None:
    """Another instance of the same member ends the first one, which writes no more."""
    async with it.reporter() as old, it.reporter() as new:
        await whole(old)
        await whole(new)
        it.change(1, maintenance=True)
        with pytest.raises(FencedError, match="no longer member a of group ironic, and stops"):
            await old.tick()
        assert it.reserved(1) == 0
        assert await new.tick()
        assert it.reserved(1) == 1


@played(3)
async def test_what_is_old_is_not_sent(it: World) -> None:
    """If a process is stopped after it has read, it reads again: others may have reported since."""
    async with it.reporter() as reporter:
        await whole(reporter)
        it.change(1, maintenance=True)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(sending, "monotonic", lambda: monotonic() + TTL)
            assert not await reporter.tick()
        assert "too long" in str(reporter.progress.trouble)
        assert it.reserved(1) == 0
        assert await reporter.tick()
        assert it.reserved(1) == 1


@played(3)
async def test_removed_by_somebody(it: World) -> None:
    """A member that an operator has removed joins again."""
    async with it.reporter() as reporter:
        await whole(reporter)
        it.reporting.leave(GROUP, "a")
        it.change(1, maintenance=True)
        assert await reporter.tick()
        assert it.reserved(1) == 1


@played(3)
async def test_conductors(it: World) -> None:
    """The live ones are observed; while Ironic does not say, the last list stays."""
    it.double.fleet.conductors = {"one": True, "two": True, "dead": False}
    async with it.reporter(conductors=CONDUCTORS) as reporter:
        it.double.faults.pending.append(Fault("conductors", answer=500))
        await whole(reporter)
        with pytest.raises(RefusedError):
            it.reporting.group(CONDUCTORS)
        await whole(reporter)
        assert it.reporting.group(CONDUCTORS).observed == ["one", "two"]
        it.double.faults.pending.append(Fault("conductors", answer=500))
        await whole(reporter)
        found = it.reporting.group(CONDUCTORS)
        assert found.observed == ["one", "two"]
        assert "500" in found.observer_error
        it.double.fleet.conductors["two"] = False
        await whole(reporter)
        found = it.reporting.group(CONDUCTORS)
        assert (found.observed, found.observer_error) == (["one"], "")


@played(3)
async def test_never_changed_first(it: World) -> None:
    """If Ironic's database puts nodes without a time first, all nodes are read instead."""
    async with it.reporter() as reporter:
        await whole(reporter)
        it.double.fleet.nothing_last = False
        it.change(1, maintenance=True)
        assert await reporter.tick()
        await reporter.read_all_done()
        assert it.reserved(1) == 1
