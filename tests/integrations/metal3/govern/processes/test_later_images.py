"""Images that come while a host is inspected or cleaned: it would go on to them by itself."""

import asyncio
from pathlib import Path

import pytest

from moorage.integrations.metal3 import admission_decision
from moorage.integrations.metal3.hosts import BareMetalHost, Verb, held_verbs_of, work_of
from moorage.wire.admission import Lease
from tests.integrations.metal3.govern.processes.test_rules_file import SMALL, busiest
from tests.integrations.metal3.govern.processes.world import ALL, World
from tests.support.kubernetes_client import host

pytestmark = pytest.mark.thorough

RULES = """
[[rule]]
pool = "looks"
verbs = ["inspect", "prepare"]

[[rule]]
pool = "images"
verbs = ["provision"]
"""
ONE_POOL = """
[[rule]]
pool = "images"
"""
LIMITS = {"looks": 6, "images": 2}
NAMES = [f"host-{number}" for number in range(8)]
INSPECTING_SECONDS = 400.0
"""Of the virtual clock: the images come in this time."""
SECONDS = 100.0


def images_while_inspected(folder: Path, rules: str) -> tuple[World, list[Lease]]:
    """Give each host an image while it is inspected, until all are provisioned, without a lease.

    Returns also the leases of images that have ended.
    """
    file = folder / "rules.toml"
    file.write_text(rules)
    ended: list[Lease] = []

    async def image(world: World, name: str) -> None:
        await world.until(lambda: world.number([name], "inspecting") == 1)
        await world.image(name, SMALL)

    async def scene(world: World) -> None:
        async with world.observed(), world.governor("--rules", str(file)):
            for name in NAMES:
                await world.api.create(ALL, host(name))
            await asyncio.gather(*(image(world, name) for name in NAMES))
            await world.until(lambda: world.number(NAMES, "provisioned") == len(NAMES))
            await world.until(lambda: not world.leases())
            ended.extend(world.admission.leases("images", "ended"))

    async def run() -> World:
        async with World(folder, LIMITS) as world:
            world.nodes.seconds["inspecting"] = INSPECTING_SECONDS
            await asyncio.wait_for(scene(world), SECONDS)
        return world

    return asyncio.run(run()), ended


def test_an_image_waits_for_its_units(tmp_path: Path) -> None:
    """By rules with a pool for images alone, each limit holds, and nothing is counted by force."""
    world, ended = images_while_inspected(tmp_path, RULES)
    assert busiest(world, NAMES, {"deploying"}) == LIMITS["images"]
    assert busiest(world, NAMES, {"inspecting", "cleaning"}) <= LIMITS["looks"]
    assert not any(one.forced for one in ended)
    world.check_pauses()


def test_one_unit_is_enough_for_all(tmp_path: Path) -> None:
    """By a rule without verbs, the unit of the inspection is also that of the image."""
    world, ended = images_while_inspected(tmp_path, ONE_POOL)
    assert busiest(world, NAMES) == LIMITS["images"]
    assert len(ended) == len(NAMES)
    world.check_pauses()


def test_without_our_pause_images_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: if only idle hosts get our pause, the limit is exceeded. The images are counted
    then, beside the inspections.
    """

    def of_idle_hosts(host: BareMetalHost) -> frozenset[Verb]:
        return held_verbs_of(host) if work_of(host) is None else frozenset()

    monkeypatch.setattr(admission_decision, "held_verbs_of", of_idle_hosts)
    world, ended = images_while_inspected(tmp_path, RULES)
    assert busiest(world, NAMES, {"deploying"}) > LIMITS["images"]
    assert len(ended) == len(NAMES)
    assert all(one.forced and one.key.endswith("/image/images/adopted") for one in ended)
