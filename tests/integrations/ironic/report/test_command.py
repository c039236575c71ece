"""`moorage ironic report --once` and `--dry-run`: exit codes, and that one foretells the other."""

import json
from typing import Any

from tests.integrations.ironic.report.world import CLASS, GROUP, World, played, whole
from tests.support.ironic_double.faults import Fault

NODES = 12


@played(NODES)
async def test_once(it: World) -> None:
    """All nodes are reported, and the group is left; the exit code says whether all went well."""
    code, output, _ = await it.command("--once", "--member", "a")
    assert (code, output) == (0, f"{NODES} nodes sent: {NODES} created\n")
    assert it.reporting.group(GROUP).members == []
    it.double.faults.pending.append(Fault("list", answer=500))
    code, _, errors = await it.command("--once", "--member", "a")
    assert code == 1
    assert errors.splitlines()[-1] == "moorage: not all nodes are reported"


def created(it: World, number: int, **changed: Any) -> dict[str, Any]:
    """Describe the provider of a node that somebody else has made."""
    uuid = it.node(number).uuid
    inventory = {"total": 1, "reserved": 0, "max_unit": 1}
    whole_ = {"uuid": uuid, "name": uuid, "inventories": {CLASS: inventory}, "traits": []}
    return {**whole_, **changed}


@played(NODES)
async def test_a_dry_run_foretells(it: World) -> None:
    """It writes nothing and joins nothing, and says of each node what the run then does."""
    async with it.reporter() as reporter:
        it.node(1).members["traits"] = ["CUSTOM_OLD", "CUSTOM_KEPT"]
        await whole(reporter)
    it.change(1, traits=["CUSTOM_KEPT", "CUSTOM_NEW"])
    it.change(2, maintenance=True)
    it.change(3, resource_class="gold")
    it.change(4, resource_class=None)
    for number in (5, 6, 7, 8):
        it.admin.request("POST", "/v1/providers:bulk", _foreign(it, number))
    it.double.fleet.add(
        {"name": "new", "driver": "fake-hardware", "resource_class": "baremetal"}, "available"
    )
    before = it.cursor()
    code, output, errors = await it.command("--dry-run", "--json", token=it.secret)
    assert code == 0, errors
    assert it.changes(before, "provider", "inventory", "tags", "reporter", "reporter_group") == []
    told = {one["uuid"]: one for one in json.loads(output)}
    assert it.node(4).uuid not in told
    assert told[it.node(1).uuid]["fields"] == [
        *("trait CUSTOM_NEW: added", "trait CUSTOM_OLD: removed"),
    ]
    assert told[it.node(2).uuid]["fields"] == [f"{CLASS} reserved: 0 becomes 1"]
    assert told[it.node(3).uuid]["fields"] == [f"{CLASS}: removed", "CUSTOM_GOLD: added"]
    assert {one["outcome"] for one in told.values()} == {"created", "updated", "unchanged"}
    expected = {uuid: one["outcome"] for uuid, one in told.items()}
    assert await _done(it) == expected


def _foreign(it: World, number: int) -> dict[str, Any]:
    changed: dict[int, dict[str, Any]] = {
        5: {"traits": ["CUSTOM_FOREIGN"]},
        6: {"name": "another name"},
        7: {"traits": ["OWNER_NOVA"], "inventories": {CLASS: {"total": 1, "reserved": 1}}},
        8: {"inventories": {CLASS: {"total": 1, "allocation_ratio": 2.0}, "VCPU": {"total": 4}}},
    }
    provider = created(it, number, **changed[number])
    return {"providers": [provider], "create_vocabulary": True}


async def _done(it: World) -> dict[str, str]:
    """Report everything; return which providers were created or changed, or neither."""
    before, cursor = it.providers(), it.cursor()
    async with it.reporter() as reporter:
        await whole(reporter)
    changed = {
        change["key"].partition("/")[0]
        for change in it.changes(cursor, "provider", "inventory", "tags")
    }
    nodes = [one for one in it.double.fleet.nodes if one != it.node(4).uuid]
    return {
        uuid: "created" if uuid not in before else "updated" if uuid in changed else "unchanged"
        for uuid in nodes
    }
