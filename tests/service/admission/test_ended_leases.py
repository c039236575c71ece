"""Ended leases are kept for a setting's length, and a setting's number: lists, reports, keys."""

import asyncio
from pathlib import Path

import pytest

from moorage.core.admission.requests import Proof
from moorage.core.clock import HOUR
from moorage.core.ids import LeaseId
from moorage.service.admission import ended
from moorage.service.admission.lease_cases import LeaseRelease
from moorage.service.chores import RETENTION_BY_DEFAULT, Retention
from tests.service.pools import ask, pool_put, spec
from tests.service.running import Running, running

WEEK = 7 * 24 * HOUR


async def end_one(one: Running, key: str) -> LeaseId:
    """Grant a lease, and let it end an hour later."""
    admission = one.service.admission
    lease = (await ask(admission, key, "p", ttl=HOUR)).lease
    assert lease.state == "granted"
    one.clock.at += HOUR - 1
    await admission.change(LeaseRelease(lease.id, Proof("me")))
    return lease.id


def test_ended_leases_are_kept_for_the_setting(tmp_path: Path) -> None:
    """With a week, a lease of six days ago is in the report, and its key returns it.

    The control: by default the same lease is gone after a day, and so is its key.
    """

    async def scenario(retention: Retention, folder: Path, kept: bool) -> None:
        async with running(folder, retention=retention) as one:
            admission = one.service.admission
            await pool_put(admission, "p", spec())
            first = await end_one(one, "a")
            one.clock.at += 6 * 24 * HOUR
            assert await admission.forget() == (0 if kept else 1)
            report = await admission.queries.report("p", WEEK)
            assert (report.asked, report.leases) == (WEEK, int(kept))
            assert report.covered == (WEEK if kept else 24 * HOUR)
            if kept:
                assert report.held == (HOUR - 1,) * 3
            assert (await admission.queries.report("p")).leases == 0  # of the last day
            assert ((await ask(admission, "a", "p", ttl=HOUR)).lease.id == first) is kept

    asyncio.run(scenario(Retention(ended_leases_hours=7 * 24), tmp_path / "kept.sqlite", True))
    asyncio.run(scenario(RETENTION_BY_DEFAULT, tmp_path / "gone.sqlite", False))


def test_ended_leases_are_bounded_in_number(tmp_path: Path) -> None:
    """Beyond the setting's number the oldest go, and a report says what it covers.

    Those of the last hour stay, however many there are: a client may repeat its request.
    """

    async def scenario() -> None:
        retention = Retention(ended_leases_hours=7 * 24, ended_leases_max=2)
        async with running(tmp_path / "m.sqlite", retention=retention) as one:
            admission = one.service.admission
            await pool_put(admission, "p", spec(limit=9))
            for n in range(4):
                await end_one(one, f"k{n}")
            assert (await admission.queries.report("p", WEEK)).leases == 4
            assert await admission.forget() == 2
            report = await admission.queries.report("p", WEEK)
            assert report.leases == 2
            assert HOUR < report.covered < 2 * HOUR
            one.clock.at += 2
            for n in range(4):  # within one hour
                lease = (await ask(admission, f"m{n}", "p")).lease
                await admission.change(LeaseRelease(lease.id, Proof("me")))
            await admission.forget()
            left, _, _ = await admission.queries.leases(None, 100, "p", "ended")
            assert [view.lease.key for view in left] == ["k3", "m0", "m1", "m2", "m3"]
            one.clock.at += HOUR + 1
            await admission.forget()
            left, _, _ = await admission.queries.leases(None, 100, "p", "ended")
            assert len(left) <= 2

    asyncio.run(scenario())


@pytest.mark.parametrize("most", [2, 9])
def test_a_report_after_a_restart_says_what_it_covers(tmp_path: Path, most: int) -> None:
    """Older leases that were deleted because there were too many are no gap without leases.

    With room for more nothing was deleted, and it covers everything (the control).
    """

    async def scenario() -> None:
        retention = Retention(ended_leases_hours=7 * 24, ended_leases_max=most)
        path = tmp_path / "m.sqlite"
        async with running(path, retention=retention) as one:
            await pool_put(one.service.admission, "p", spec(limit=9))
            for n in range(4):
                await end_one(one, f"k{n}")
            assert await one.service.admission.forget() == (2 if most == 2 else 0)
            one.clock.at += 1
        async with running(path, clock=one.clock, retention=retention) as again:
            report = await again.service.admission.queries.report("p", WEEK)
            assert report.leases == min(most, 4)
            assert report.covered == WEEK if most == 9 else HOUR <= report.covered < 2 * HOUR
            history = await again.service.admission.past.history("p", WEEK, 10)
            assert (history.covered < 2 * HOUR) is (most == 2)

    asyncio.run(scenario())


async def sized(path: Path, most: int | None, size: int) -> tuple[int, int]:
    """End a dozen leases with labels of this length, and an hour later clean up.

    Returns how many are left, and how large they are.
    """
    retention = Retention(ended_leases_hours=7 * 24, ended_leases_bytes_max=most)
    async with running(path, retention=retention) as one:
        admission = one.service.admission
        await pool_put(admission, "p", spec(limit=9))
        for n in range(12):
            lease = (await ask(admission, f"k{n}", "p", labels={"big": "x" * size})).lease
            await admission.change(LeaseRelease(lease.id, Proof("me")))
            one.clock.at += 1
        assert await admission.forget() == 0, "those of the last hour stay"
        one.clock.at += HOUR
        await admission.forget()
        assert await admission.forget() == 0, "a second look deletes nothing more"
        left = (await admission.queries.report("p", WEEK)).leases
        assert left == admission.ended.leases
        return left, admission.ended.bytes


def test_ended_leases_are_bounded_in_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the setting's bytes the oldest go, as many as must. The control: small ones stay."""
    monkeypatch.setattr(ended, "AT_ONCE", 4)
    _, small = asyncio.run(sized(tmp_path / "small.sqlite", None, 1))
    left, large = asyncio.run(sized(tmp_path / "large.sqlite", None, 255))
    assert (left, large - small) == (12, 12 * 254)
    bound = (large + small) // 2
    assert asyncio.run(sized(tmp_path / "control.sqlite", bound, 1)) == (12, small)
    left, size = asyncio.run(sized(tmp_path / "bound.sqlite", bound, 255))
    assert left in (4, 8) and size <= bound
