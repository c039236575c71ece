"""`moorage ironic report --once` and `--dry-run`: exit codes, and that one foretells the other."""

import json
from typing import Any

from tests.integrations.ironic.report.world import CLASS, CONDUCTORS, GROUP, World, played, whole
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
    assert errors.splitlines()[-1] == "moorage: not all nodes were reported"


@played(NODES)
async def test_refusals_say_what_to_change(it: World) -> None:
    """Each names the server, and the option, variable or role that helps."""
    token = "an unknown token"
    for options in (("--once",), ("--dry-run",)):
        _, _, errors = await it.command(*options, "--token", token.replace(" ", "-"))
        wanted = f"{it.server.url} does not accept this token; set one with --token-file"
        assert wanted in errors
        _, _, errors = await it.command(*options, "--url", it.double.url)
        assert f"{it.double.url} is not a Moorage server: check MOORAGE_URL or --url" in errors
    _, _, errors = await it.command("--dry-run")
    assert "--dry-run needs a token with the role reader" in errors


@played(NODES)
async def test_nodes_without_resource_class(it: World) -> None:
    """Nothing is reported of them, and both runs say so."""
    it.change(1, resource_class=None)
    it.change(2, resource_class=None)
    for options, token in ((("--once",), None), (("--dry-run",), it.secret)):
        code, _, errors = await it.command(*options, token=token)
        assert code == 0
        assert "2 nodes without resource class are not reported" in errors
    async with it.process("a") as process:
        assert process.stdout is not None
        first = await process.stdout.readline()
        assert first.decode().startswith(f"moorage: reporting {NODES - 2} nodes as ")


@played(NODES)
async def test_a_dry_run_foretells_removals(it: World) -> None:
    """Providers of nodes that Ironic does not have any more are removed, or become ghosts."""
    await it.command("--once")
    wish = {"project_id": "p", "user_id": "u", "groups": [{"resources": {CLASS: 1}}]}
    (used,) = it.admin.request("POST", "/v1/claims", wish)["allocations"]
    uuid = next(uuid for uuid in it.double.fleet.nodes if uuid != used)
    for gone in (uuid, used):
        it.double.fleet.remove(it.double.fleet.nodes[gone])
    code, output, errors = await it.command("--dry-run", token=it.secret)
    assert code == 0, errors
    lines = {line.partition("\t")[0]: line for line in output.splitlines()}
    assert lines[uuid] == f"{uuid}\tremoved"
    assert lines[used] == f"{used}\tupdated\t{CLASS} reserved: 0 becomes 1\tghost"
    code, output, _ = await it.command("--once")
    assert (code, output) == (
        0,
        f"{NODES} nodes sent: 1 removed, {NODES - 2} unchanged, 1 updated\n",
    )


@played(NODES)
async def test_a_dry_run_foretells_another_group(it: World) -> None:
    """A group that begins to report the nodes of another one, perhaps by mistake, changes them."""
    await it.command("--once")
    other = ("--group", CONDUCTORS)
    code, output, errors = await it.command("--dry-run", *other, token=it.secret)
    assert code == 0, errors
    shown = f"updated\tgroup {CONDUCTORS}: reports it besides {GROUP}"
    assert {line.partition("\t")[2] for line in output.splitlines()} == {shown}
    _, output, _ = await it.command("--once", *other)
    assert output == f"{NODES} nodes sent: {NODES} updated\n"
    _, output, _ = await it.command("--dry-run", *other, token=it.secret)
    assert output.count("\tunchanged") == NODES


@played(NODES)
async def test_a_dry_run_foretells_no_mass_removal(it: World) -> None:
    """If most nodes seem to be gone, a run removes none of them, and neither does a dry run."""
    await it.command("--once")
    for number in range(1, NODES + 1):
        it.double.fleet.remove(it.node(number))
    code, output, errors = await it.command("--dry-run", token=it.secret)
    assert (code, output) == (0, "")
    assert "more than 10 nodes are gone: none is reported as gone without --many-gone" in errors
    _, output, _ = await it.command("--dry-run", "--many-gone", token=it.secret)
    assert output.count("\tremoved") == NODES


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
