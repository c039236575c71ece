"""The commands on a real server: over HTTP, with a token of Keystone's, interrupted and paced."""

import json
from pathlib import Path

from tests.integrations.nova.cloud import CLOUD, World, played
from tests.support.nova_double.operations import play
from tests.support.nova_double.server import SECRET

MISSING = "00000009-0000-4000-8000-000000000009"


def test_an_orphan_and_a_server_that_was_evacuated(tmp_path: Path) -> None:
    """Both are found with what a heal would release; the plan has them, in the same words."""

    async def scene(it: World) -> None:
        one, two = it.host("host-1"), it.host("host-2")
        it.server(one)
        orphan, moved = it.orphan(one), it.server(one)
        play(it.operations.evacuate(moved, two))
        it.nova.busy = 3
        plan = tmp_path / "plan.json"
        found, errors = await it.audit("nova", "-o", str(plan))
        assert {(each["code"], each["consumer"]) for each in found["findings"]} == {
            ("orphan", orphan),
            ("doubled_evacuated", moved),
        }
        assert not found["unclear"] and "2 findings" in errors
        assert it.nova.busiest <= 8
        heal = json.loads(plan.read_text())
        assert heal["of"] == f"{CLOUD} and {it.url}"
        assert [each["release"] for each in heal["heal"]] == [
            each["release"] for each in found["findings"]
        ]
        assert it.ledger.consumer(orphan).allocations  # nothing was written

    played(scene, tmp_path)


def test_a_token_that_has_expired(tmp_path: Path) -> None:
    """Another one is taken from Keystone, once for all requests that were refused."""

    async def scene(it: World) -> None:
        it.server(it.host("host-1"))

        def expire(target: str) -> None:
            if target.startswith("/os-hypervisors/detail"):
                it.nova.valid = "another token"

        it.nova.before = expire
        found, _ = await it.audit("nova")
        assert not found["findings"] and it.nova.logins == 2

    played(scene, tmp_path)


def test_a_keystone_that_is_away_for_a_moment(tmp_path: Path) -> None:
    """A long audit needs more than one token: it goes on when Keystone is back."""

    async def scene(it: World) -> None:
        orphan = it.orphan(it.host("host-1"))

        def expire(target: str) -> None:
            if target.startswith("/os-hypervisors/detail") and it.nova.valid == SECRET:
                it.nova.valid, it.nova.closed = "another token", 1

        it.nova.before = expire
        found, _ = await it.audit("nova")
        assert [each["consumer"] for each in found["findings"]] == [orphan]
        assert not found["unclear"] and it.nova.closed == 0

    played(scene, tmp_path)


def test_a_keystone_that_is_away(tmp_path: Path) -> None:
    """It is no mistake in the command: the same may succeed later."""

    async def scene(it: World) -> None:
        it.nova.closed = 1
        code, _, errors = await it.command("audit", "nova", "--os-cloud", CLOUD)
        assert code == 5 and "Keystone does not answer for mycloud" in errors

    played(scene, tmp_path)


def test_a_token_that_sees_only_its_own_project(tmp_path: Path) -> None:
    """Nova answers 404 for the servers of others: the audit ends, and finds no orphan."""

    async def scene(it: World) -> None:
        node = it.host("host-1")
        it.server(node)
        it.orphan(node)
        it.nova.api.only_project = "nobody's"
        words = ("audit", "nova", "--os-cloud", CLOUD, "--settle", "0")
        code, output, errors = await it.command(*words)
        assert (code, output) == (1, "")
        assert "an administrator of all projects must ask" in errors

    played(scene, tmp_path)


def test_a_server_that_can_be_restored(tmp_path: Path) -> None:
    """Nova lists it no more, but it is there: its host is compared, and nothing is wrong."""

    async def scene(it: World) -> None:
        node = it.host("host-1")
        it.server(node)
        deleted = it.database.instance(it.server(node))
        assert deleted is not None
        deleted.vm_state = "soft-delete"
        found, _ = await it.audit("nova")
        assert (found["findings"], found["unclear"]) == ([], [])
        assert found["looked_at"]["hosts"] == 1

    played(scene, tmp_path)


def test_another_cloud(tmp_path: Path) -> None:
    """If Nova knows hardly any of the compute nodes, nothing is compared."""

    async def scene(it: World) -> None:
        it.server(it.host("host-1"))
        for number in range(3):
            it.provide(f"0000000{number}-0000-4000-8000-00000000aaaa", f"there-{number}", {})
        code, output, errors = await it.command("audit", "nova", "--os-cloud", CLOUD)
        assert (code, output) == (1, "")
        assert "Nova knows only 1 of the 4 compute nodes in the ledger" in errors

    played(scene, tmp_path)


def test_an_interruption(tmp_path: Path) -> None:
    """An audit that was interrupted asks only about the hosts that it has not compared."""

    async def scene(it: World) -> None:
        hosts = [it.host(f"host-{number}") for number in range(6)]
        orphans = sorted(it.orphan(host) for host in hosts)
        state = tmp_path / "audit.state"
        header = {"kind": "moorage audit of nova, 1", "of": f"{CLOUD} and {it.url}"}
        done = [{"host": f"host-{number}", "suspects": [orphans[number]]} for number in range(4)]
        lines = [json.dumps(each) for each in (header, *done)]
        state.write_text("\n".join(lines) + '\n{"host": "host-4", "susp')
        found, _ = await it.audit("nova", "--state", str(state))
        assert [each["consumer"] for each in found["findings"]] == orphans
        lists = [path for path in it.nova.requests if path.startswith("/servers/detail")]
        assert [path[-6:] for path in lists] == ["host-4", "host-5"]
        assert not state.exists()

        state.write_text(json.dumps({**header, "of": "another"}))
        code, _, errors = await it.command(
            "audit", "nova", "--os-cloud", CLOUD, "--state", str(state)
        )
        assert code == 2 and "is of an audit of another" in errors

    played(scene, tmp_path)


def test_ironic_beside_nova(tmp_path: Path) -> None:
    """A node that Ironic does not know, and one with another server than Nova says."""

    async def scene(it: World) -> None:
        cell = it.database.cells[0]
        nodes = [it.database.add_host(cell, "metal", "ironic") for _ in range(3)]
        for node in nodes:
            it.provide(node.uuid, node.uuid, {"CUSTOM_BAREMETAL": 1})
        for node in nodes[1:]:
            members = {"uuid": node.uuid, "name": node.uuid, "driver": "fake-hardware"}
            it.ironic.fleet.add({**members, "resource_class": "baremetal"}, "available")
        it.ironic.fleet.find(nodes[1].uuid).members["instance_uuid"] = MISSING
        found, _ = await it.audit("nova", "--ironic")
        assert {(each["code"], each["provider"]) for each in found["findings"]} == {
            ("ghost_node", nodes[0].uuid),
            ("instance_disagrees", nodes[1].uuid),
        }
        found, _ = await it.audit("ironic")
        assert {(each["code"], each["provider"]) for each in found["findings"]} == {
            ("ghost_node", nodes[0].uuid),
            ("instance_disagrees", nodes[1].uuid),
        }

    played(scene, tmp_path)


def test_the_audit_log_of_a_pool_named_nova(tmp_path: Path) -> None:
    """After `--`, a word is always a target of the audit log."""

    async def scene(it: World) -> None:
        for words in (("pool", "create", "nova", "--limit", "1"), ("audit", "--", "nova")):
            code, output, errors = await it.command(*words)
            assert code == 0, errors
        assert "pool.put" in output

    played(scene, tmp_path)
