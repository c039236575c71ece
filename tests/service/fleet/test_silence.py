"""A silent agent closes every class of its machine if its group says so, and opens it again.

On PostgreSQL the machine speaks with one process, and operators and clients with another.
"""

import pytest

from moorage.core.clock import SECOND
from moorage.core.errors import Code, Error
from moorage.core.fleet.desired import DesiredSpec
from moorage.core.fleet.model import Goal, Silence
from moorage.core.ids import ProviderId
from moorage.core.ledger.capacity import capacity_of
from tests.service.fleet.machines import (
    BOOT,
    PAGES,
    agent_desired,
    agent_id,
    agent_put,
    machine,
    report,
)
from tests.service.fleet.pair import Pair, play
from tests.service.running import TESTER, claim

GROUP = "default"
LONG = 60


async def registered(pair: Pair) -> ProviderId:
    """Let the first machine offer 10 pages below a root that others created; return this root."""
    root, (fleet, _) = await pair.provider(1, VCPU=4), pair.fleets
    await agent_put(fleet, agent_id(1), GROUP, {}, None, TESTER, root)
    await fleet.register(agent_id(1), machine(1, root=root), TESTER)
    await agent_desired(fleet, agent_id(1), DesiredSpec(PAGES, goal=Goal(amount=10)), "", TESTER)
    await fleet.report(agent_id(1), report(1, 1, 10), TESTER)
    return root


async def fall_silent(pair: Pair, seconds: int) -> None:
    """Let nobody be heard of for some time."""
    await pair.caught_up()
    for _ in range(seconds):
        pair.clock.at += SECOND
        for fleet in pair.fleets:
            await fleet.liveness_loop.look()


async def capacity(pair: Pair, root: ProviderId) -> float:
    """Return how much may be allocated of a class that the agent does not manage."""
    await pair.caught_up()
    found = set()
    for service in pair.services:
        record = (await service.index.current()).record(root)
        assert record is not None
        found.add(capacity_of(record.inventories["VCPU"]))
    (same,) = found
    return same


async def claimed(pair: Pair, root: ProviderId, number: int) -> Code | None:
    """Claim a unit of that class; return why it is refused."""
    try:
        await pair.submit(claim(number, root, VCPU=1), at=1)
    except Error as refusal:
        return refusal.code
    return None


@pytest.mark.parametrize("silence", [*Silence])
def test_what_silence_closes(url: str, silence: Silence) -> None:
    """Nothing may be placed there while the agent is silent; what is there stays."""

    async def scenario(pair: Pair) -> None:
        root = await registered(pair)
        fleet, other = pair.fleets
        await other.group_defaults.put(GROUP, {}, TESTER, silence)
        assert (await claimed(pair, root, 1), await capacity(pair, root)) == (None, 4.0)
        await fall_silent(pair, LONG)
        if silence is Silence.ALL:
            assert await capacity(pair, root) == 0.0
            assert await claimed(pair, root, 2) is Code.CAPACITY_EXCEEDED
        else:
            assert await capacity(pair, root) == 4.0
            assert await claimed(pair, root, 2) is None
        await fleet.alive(agent_id(1), BOOT, 1)
        assert await capacity(pair, root) == 4.0
        assert await claimed(pair, root, 3) is None

    play(url, scenario)


def test_a_setting_holds_for_who_is_silent_already(url: str) -> None:
    """Its machine is closed at once, and opened at once when the setting is taken back."""

    async def scenario(pair: Pair) -> None:
        root = await registered(pair)
        _, fleet = pair.fleets
        await fall_silent(pair, LONG)
        for silence, left in ((Silence.ALL, 0.0), (Silence.OWN, 4.0), (Silence.ALL, 0.0)):
            await fleet.group_defaults.put(GROUP, {}, TESTER, silence)
            assert await capacity(pair, root) == left
        rows, _ = await pair.services[0].audit.page(None, 10)
        assert '"silence":"all"' in str(rows[0].after)

    play(url, scenario)
