"""The commands against a real nova, and a real ledger: an audit, a heal, and its undo."""

import json
import re
from pathlib import Path

from tests.integrations.nova.cloud import TOTALS, World, played
from tests.real_nova.mirror import RealNova
from tests.simulation.nova.world import LARGE
from tests.support.nova_double.operations import play

UNDO = re.compile(r"moorage reshape undo (\S+)")
Keys = set[tuple[str, str]]


def plant(it: World) -> Keys:
    """Let servers of all states be there; return what must be found: code and consumer."""
    one, two = it.host("host-1"), it.host("host-2")
    far = it.database.add_host(it.database.cells[1], "far")
    it.provide(far.uuid, far.name, TOTALS)
    it.server(one)
    it.server(far)
    resized, evacuated, shelved = it.server(one), it.server(one), it.server(two)
    play(it.operations.resize(resized, two, LARGE))
    play(it.operations.evacuate(evacuated, two))
    held = it.placement.read(shelved)
    play(it.operations.shelve(shelved))
    it.placement.write({shelved: held})
    for cut in ("claimed", "request deleted"):  # only a build request has it; it has no host
        play(it.operations.boot(it.database.new_uuid(), one), until=cut)
    return {
        ("orphan", it.orphan(one)),
        ("doubled_evacuated", evacuated),
        ("offloaded", shelved),
    }


def test_an_audit_a_heal_and_an_undo(tmp_path: Path) -> None:
    """What is left over is found and released, and what is alive is not; undo brings it back."""

    async def scene(it: World) -> None:
        wanted = plant(it)
        plan = tmp_path / "plan.json"

        async def found() -> Keys:
            report, _ = await it.audit("nova", "-o", str(plan))
            assert not report["unclear"]
            return {(each["code"], each["consumer"]) for each in report["findings"]}

        async with RealNova(it.nova, tmp_path) as nova:
            await nova.become(it.database)
            it.nova.compute = nova.url
            before = {uuid: it.ledger.consumer(uuid).allocations for _, uuid in wanted}
            assert await found() == wanted
            assert len(json.loads(plan.read_text())["heal"]) == len(wanted)
            code, output, errors = await it.command("heal", str(plan), "--yes")
            assert code == 0, errors
            assert await found() == set()
            (reshape,) = UNDO.findall(output)
            code, _, errors = await it.command("reshape", "undo", reshape, "--yes")
            assert code == 0, errors
            assert await found() == wanted
            assert before == {uuid: it.ledger.consumer(uuid).allocations for _, uuid in wanted}
        assert not it.nova.requests  # the double was only asked for tokens

    played(scene, tmp_path)
