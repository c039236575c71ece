"""Hosts whose BMC secret people create later than the host itself."""

from datetime import timedelta
from pathlib import Path

from tests.integrations.metal3.govern.test_governor import ALL, IMAGE, OWN, World, play
from tests.support.bmo_double.hosts import PAUSED, annotations
from tests.support.kubernetes_client import host

ERRORS = 6
"""After this many a host would wait for an hour, if each error of the operator counted."""


def test_a_secret_that_is_created_late(tmp_path: Path) -> None:
    """The host gives its unit back to another one, and is inspected minutes after its secret is
    there, although the operator has counted an error every ten seconds.
    """

    async def scene(world: World) -> None:
        def failing() -> bool:
            found = world.host("a")
            errors = int(found.get("status", {}).get("errorCount", 0))
            return errors >= ERRORS and annotations(found).get(PAUSED) == OWN[PAUSED]

        world.bmo.missing.add("a-bmc")
        await world.api.create(ALL, host("a", image=IMAGE, annotations=OWN))
        async with world.governor(now=world.bmo.now, stuck_seconds=1.0) as governor:
            await world.until(failing, governor)
            await world.api.create(ALL, host("b", image=IMAGE, annotations=OWN))
            world.bmo.missing.clear()
            created = world.bmo.now()
            await world.until(
                lambda: world.nodes.book.times("metal3~a", "inspecting") > 0, governor
            )
            assert world.bmo.now() - created < timedelta(minutes=25)
            await world.until(lambda: world.reached(["a", "b"], "provisioned"), governor)

    play(tmp_path, scene, limit=1, failing=0.0)
