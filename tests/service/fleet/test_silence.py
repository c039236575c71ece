"""A silent agent closes every class of its machine if its group says so, and opens it again."""

from pathlib import Path

import pytest

from moorage.core.errors import Code, Error
from moorage.core.fleet.model import Silence
from moorage.core.ids import ProviderId
from moorage.core.ledger.capacity import capacity_of
from tests.service.fleet.alone import play
from tests.service.fleet.machines import BOOT, agent_id
from tests.service.fleet.test_deleted_providers import GIVEN, fall_silent, registered
from tests.service.running import TESTER, Running, claim

GROUP = "default"
LONG = 60


def capacity(one: Running, root: ProviderId) -> float:
    """Return how much of a class may be allocated that the agent does not manage."""
    record = one.service.index.catalog.record(root)
    assert record is not None
    return capacity_of(record.inventories["VCPU"])


async def claimed(one: Running, root: ProviderId, number: int) -> Code | None:
    """Claim a unit of that class; return why it is refused."""
    try:
        await one.submit(claim(number, root, VCPU=1))
    except Error as refusal:
        return refusal.code
    return None


@pytest.mark.parametrize("silence", [*Silence])
def test_what_silence_closes(tmp_path: Path, silence: Silence) -> None:
    """Nothing may be placed there while the agent is silent; what is there stays."""

    async def scenario(one: Running) -> None:
        fleet = one.service.fleet
        root = await registered(one, GIVEN)
        await fleet.group_defaults.put(GROUP, {}, TESTER, silence)
        assert (await claimed(one, root, 1), capacity(one, root)) == (None, 4.0)
        await fall_silent(one, LONG)
        if silence is Silence.ALL:
            assert capacity(one, root) == 0.0
            assert await claimed(one, root, 2) is Code.CAPACITY_EXCEEDED
        else:
            assert capacity(one, root) == 4.0
            assert await claimed(one, root, 2) is None
        await fleet.alive(agent_id(1), BOOT, 1)
        assert capacity(one, root) == 4.0
        assert await claimed(one, root, 3) is None

    play(tmp_path, scenario)


def test_a_setting_holds_for_who_is_silent_already(tmp_path: Path) -> None:
    """Its machine is closed at once, and opened at once when the setting is taken back."""

    async def scenario(one: Running) -> None:
        fleet = one.service.fleet
        root = await registered(one, GIVEN)
        await fall_silent(one, LONG)
        for silence, left in ((Silence.ALL, 0.0), (Silence.OWN, 4.0), (Silence.ALL, 0.0)):
            await fleet.group_defaults.put(GROUP, {}, TESTER, silence)
            assert capacity(one, root) == left
        rows, _ = await one.service.audit.page(None, 10)
        assert '"silence":"all"' in str(rows[0].after)

    play(tmp_path, scenario)
