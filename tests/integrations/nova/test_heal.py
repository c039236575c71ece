"""`moorage heal` releases what an audit has found, skips what has changed, and can be undone."""

import json
from pathlib import Path

from tests.integrations.nova.cloud import World, played
from tests.support.nova_double.database import FLAVOR
from tests.support.nova_double.operations import play, resources


async def audited(it: World, plan: Path) -> list[tuple[str, str]]:
    """Write the plan of an audit; return its codes and subjects."""
    found, _ = await it.audit("nova", "-o", str(plan))
    return sorted((one["code"], one["consumer"] or one["provider"]) for one in found["findings"])


def test_a_heal_and_its_undo(tmp_path: Path) -> None:
    """What is unchanged is healed in one reshape; then an audit finds nothing; undo restores it."""

    async def scene(it: World) -> None:
        one, two, three = (it.host(f"host-{number}") for number in range(1, 4))
        it.server(two)
        orphan, moved, late = it.orphan(one), it.server(one), it.orphan(two)
        play(it.operations.evacuate(moved, two))
        it.database.remove_host(three.host)
        plan = tmp_path / "plan.json"
        assert await audited(it, plan) == sorted(
            [
                ("dead_provider", three.uuid),
                ("doubled_evacuated", moved),
                ("orphan", late),
                ("orphan", orphan),
            ]
        )
        it.placement.write({late: {two.uuid: {"VCPU": 1}}})  # since the audit

        code, output, errors = await it.command("heal", str(plan), "--dry-run", "--json")
        assert code == 0, errors
        shown = json.loads(output)
        assert {each["subject"] for each in shown["heal"]} == {orphan, moved, three.uuid}
        assert [each["subject"] for each in shown["skipped"]] == [late]
        assert it.ledger.consumer(orphan).allocations

        code, output, errors = await it.command("heal", str(plan), "--yes", "--json")
        assert code == 0, errors
        (reshape,) = json.loads(output)["reshapes"]
        assert [each.provider for each in it.ledger.consumer(moved).allocations] == [two.uuid]
        uuids = {each.uuid for each in it.ledger.consumers()}
        assert orphan not in uuids and late in uuids
        assert three.uuid not in {each.uuid for each in it.ledger.providers()}
        assert await audited(it, plan) == [("orphan", late)]

        code, _, errors = await it.command("reshape", "undo", reshape, "--yes")
        assert code == 0, errors
        assert it.ledger.consumer(orphan).allocations[0].resources == resources(FLAVOR)
        held = {each.provider for each in it.ledger.consumer(moved).allocations}
        assert held == {one.uuid, two.uuid}
        assert it.ledger.provider(three.uuid).name == "host-3"

    played(scene, tmp_path)


def test_only_one_code(tmp_path: Path) -> None:
    """Other findings stay; a second heal has nothing to do, and ends with 4."""

    async def scene(it: World) -> None:
        node, dead = it.host("host-1"), it.host("host-2")
        it.server(node)
        orphan = it.orphan(node)
        it.database.remove_host(dead.host)
        plan = tmp_path / "plan.json"
        await audited(it, plan)
        words = ("heal", str(plan), "--only", "orphan")
        code, _, errors = await it.command(*words)
        assert code == 2 and "add --yes" in errors
        code, output, errors = await it.command(*words, "--yes")
        assert code == 0 and orphan in output, errors
        assert it.ledger.provider(dead.uuid).name == "host-2"
        code, output, errors = await it.command(*words, "--yes")
        assert code == 4 and "it holds nothing any more" in output, errors

    played(scene, tmp_path)


def test_a_wrong_file(tmp_path: Path) -> None:
    """What no audit has written is refused by name."""

    async def scene(it: World) -> None:
        plan = tmp_path / "plan.json"
        for text, said in (
            ("{", "Expecting property name"),
            ("[" * 100_000, "it is nested too deeply"),
            ('{"kind": "moorage heal, 1", "kind": "x"}', "'kind' is defined twice"),
            ("[]", "it is not a plan of moorage audit nova"),
            ('{"kind": "moorage heal, 1", "heal": [{}]}', "one of its entries cannot be read"),
        ):
            plan.write_text(text)
            code, _, errors = await it.command("heal", str(plan), "--dry-run")
            assert code == 2 and said in errors

    played(scene, tmp_path)
