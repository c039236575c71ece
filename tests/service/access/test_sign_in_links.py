"""A link signs in once, in time, on any process, and only while its token is valid."""

import asyncio
from pathlib import Path

import pytest

from moorage.core.clock import MINUTE, SECOND
from moorage.service.access.sign_in_links import LIFE
from moorage.service.app import Service
from tests.service.access.test_sessions import play, started, token_made
from tests.service.running import TESTER, ManualClock
from tests.support import cluster


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the address of an empty database of each engine."""
    return cluster.fresh() if request.param == "postgresql" else f"sqlite:///{tmp_path}/m.sqlite"


def test_a_link_works_once(url: str) -> None:
    """Also if several try at the same time, on both processes; looking does not use it."""

    async def scenario(services: list[Service], _: ManualClock) -> None:
        here, there = services[0].access, services[-1].access
        token = await token_made(services[0])
        code, _ends = await here.links.make(token.id, by=TESTER)
        for access in (here, there):
            seen = await access.links.find(code)
            assert seen is not None and seen.id == token.id
            assert await access.sessions.find(code) is None, "a code is no session"
        tries = [one.access.links.redeem(code, source="x") for one in services * 3]
        secrets = [one for one in await asyncio.gather(*tries) if one is not None]
        assert len(secrets) == 1
        session = await there.sessions.find(secrets[0])
        assert session is not None and session.token is not None
        assert session.token.id == token.id
        assert await here.links.find(code) is None
        assert await there.links.redeem(code, source="x") is None

    play(url, scenario)


def test_a_link_ends_in_time(url: str) -> None:
    """The last second counts, the next does not."""

    async def scenario(services: list[Service], clock: ManualClock) -> None:
        here, there = services[0].access.links, services[-1].access.links
        token = await token_made(services[0])
        (late, ends), (soon, _) = [await here.make(token.id, by=TESTER) for _ in range(2)]
        assert ends - clock.now() == LIFE == 2 * MINUTE
        clock.at += LIFE - SECOND
        assert await there.redeem(soon, source="x") is not None
        clock.at += SECOND
        assert await there.find(late) is None
        assert await there.redeem(late, source="x") is None

    play(url, scenario)


def test_a_link_ends_with_its_token(url: str) -> None:
    """Revoked or expired."""

    async def scenario(services: list[Service], clock: ManualClock) -> None:
        here, there = services[0].access, services[-1].access
        revoked = await token_made(services[0])
        expiring = await token_made(services[0], "e", MINUTE)
        codes = [(await here.links.make(one.id, by=TESTER))[0] for one in (revoked, expiring)]
        assert all([await there.links.find(code) for code in codes])
        await here.revoke(revoked.id, by=TESTER)
        clock.at += MINUTE
        assert [await there.links.redeem(code, source="x") for code in codes] == [None, None]

    play(url, scenario)


def test_a_link_survives_a_restart(url: str) -> None:
    """It is stored: only its hash."""

    async def run() -> None:
        clock = ManualClock()
        first = await started(url, clock)
        token = await token_made(first)
        code, _ = await first.access.links.make(token.id, by=TESTER)
        await first.stop()
        again = await started(url, clock)
        try:
            assert await again.access.links.redeem(code, source="x") is not None
            assert await again.access.links.redeem(code, source="x") is None
        finally:
            await again.stop()

    asyncio.run(run())
