"""Holds the conversation with the double, in hurried time."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.kubernetes_conversation.playing import STEPS, Place, hold
from tests.support.kubernetes_conversation.serving import ROLES
from tests.support.kubernetes_conversation.steps import GOVERNOR, SPACE, Step
from tests.support.kubernetes_double.access import ADMIN, service_account
from tests.support.kubernetes_double.server import KubernetesDouble
from tests.support.virtual_loop import VirtualLoop, run, turns

TOKEN = "administrator"
STEP = 0.05
"""Seconds that pass whenever everything has had its turn."""


def answers_of_double(
    folder: Path | None = None, steps: tuple[Step, ...] = STEPS
) -> dict[str, Any]:
    """Return what the double answers; without a folder, to the steps alone."""
    answers: dict[str, Any] = {}

    async def play(loop: VirtualLoop) -> None:
        hurrying = asyncio.create_task(_hurry(loop))
        try:
            answers.update(await _answers(folder, steps))
        finally:
            hurrying.cancel()

    run(play)
    return answers


async def _hurry(loop: VirtualLoop) -> None:
    while True:
        await turns()
        loop.advance(STEP)


@dataclass
class DoubleWorld:
    """The double has no etcd: a compaction changes nothing of what it serves."""

    double: KubernetesDouble

    async def compact(self) -> None:
        """Do nothing."""

    async def restart(self) -> None:
        """Stop it, and start it on the same port."""
        await self.double.stop()
        await self.double.start()


async def _answers(folder: Path | None, steps: tuple[Step, ...]) -> dict[str, Any]:
    governor = service_account(ROLES, SPACE, "governor")
    if governor.user != GOVERNOR:
        raise ValueError(f"the steps name {GOVERNOR}, not {governor.user}")
    accounts = {TOKEN: ADMIN, "governor": governor}
    async with KubernetesDouble(accounts=accounts) as double:
        world = None if folder is None else DoubleWorld(double)
        return await hold(Place(double.url, TOKEN), folder, world, steps)
