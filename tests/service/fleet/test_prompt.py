"""What memory is enough for: the sign of life of an agent that is heard of, with a known token."""

from pathlib import Path

import pytest

from moorage.core.clock import SECOND
from moorage.core.errors import Code, Error
from moorage.core.fleet.model import Liveness
from moorage.service.access.token import digest_of
from tests.service.fleet.alone import play
from tests.service.fleet.machines import BOOT, agent_id, ready
from tests.service.fleet.pair import Pair
from tests.service.fleet.pair import play as play_both
from tests.service.running import TESTER, Running

LASTS = 60 * SECOND


def test_a_sign_of_life(tmp_path: Path) -> None:
    """It counts like any other; one that must be written is left to `alive`, and so is no error."""

    async def scenario(one: Running) -> None:
        fleet, signs = one.service.fleet, one.service.fleet.liveness_loop.signs
        agent = await ready(fleet, 1)
        one.clock.at += 5 * SECOND
        assert fleet.alive_prompt(agent_id(1), BOOT, 1) == fleet.directory.get(agent_id(1))
        assert signs.age(agent.number) == 0
        for uuid, boot, generation, code in (
            (agent_id(2), BOOT, 1, Code.AGENT_NOT_FOUND),
            (agent_id(1), "boot-0", 1, Code.STALE_BOOT),
            (agent_id(1), BOOT, 0, Code.STALE_REPORT),
            (agent_id(1), BOOT, 2, Code.REPORT_CONFLICT),
        ):
            one.clock.at += SECOND
            with pytest.raises(Error) as prompt:
                fleet.alive_prompt(uuid, boot, generation)
            with pytest.raises(Error) as usual:
                await fleet.alive(uuid, boot, generation)
            assert prompt.value.code == usual.value.code == code
        assert signs.age(agent.number) == 4 * SECOND
        one.clock.at += 7 * SECOND
        await fleet.liveness_loop.look()
        assert fleet.alive_prompt(agent_id(1), BOOT, 1) is None
        assert signs.age(agent.number) == 11 * SECOND
        assert (await fleet.alive(agent_id(1), BOOT, 1)).liveness is Liveness.FRESH
        assert fleet.alive_prompt(agent_id(1), BOOT, 1) is not None

    play(tmp_path, scenario)


def test_a_token(tmp_path: Path) -> None:
    """A token is known once it has been used; not if it was revoked or has expired since."""

    async def scenario(one: Running) -> None:
        access = one.service.access
        secret, token = await access.create("m", "operator", by=TESTER)
        short, _ = await access.create("n", "operator", by=TESTER, lasts=LASTS)
        assert access.find_prompt(digest_of(secret)) is access.find_prompt(digest_of(short)) is None
        for each in (secret, short):
            found = await access.find(each)
            assert found is not None
            assert access.find_prompt(digest_of(each)) == found
        one.clock.at += LASTS
        assert access.find_prompt(digest_of(short)) is None
        assert access.find_prompt(digest_of(secret)) is not None
        await access.revoke(token.id, by=TESTER)
        assert access.find_prompt(digest_of(secret)) is None

    play(tmp_path, scenario)


def test_other_processes(url: str) -> None:
    """If others may have written, memory is never enough."""

    async def scenario(pair: Pair) -> None:
        (here, _), fleet = pair.services, pair.fleets[0]
        shared = here.engine.shared
        await ready(fleet, 1)
        assert (fleet.alive_prompt(agent_id(1), BOOT, 1) is None) == shared
        secret, _ = await here.access.create("m", "operator", by=TESTER)
        assert await here.access.find(secret) is not None
        assert (here.access.find_prompt(digest_of(secret)) is None) == shared

    play_both(url, scenario)
