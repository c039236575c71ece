"""A line in the log for each grant and each end, and a bound on how many."""

import asyncio
import logging
from pathlib import Path

import pytest

from moorage.core.admission.requests import Proof
from moorage.service.admission import lease_log
from moorage.service.admission.ending import LeaseRevoke
from moorage.service.admission.lease_cases import LeaseRelease, LeaseRenew, OnBehalf
from tests.service.pools import ask, pool_put, spec
from tests.service.running import TESTER, running
from tests.support.virtual_loop import turns

LOG = "moorage.leases"


def test_each_grant_and_each_end_has_a_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One lease is granted at once and released, another waits and is revoked, a third is
    withdrawn before it was granted: each line names lease, pool, holder, times and cause. What
    changes neither, such as a renewal or a second release, has no line.
    """
    caplog.set_level(logging.INFO, logger=LOG)

    async def scenario() -> list[str]:
        async with running(tmp_path / "m.sqlite") as one:
            admission = one.service.admission
            await pool_put(admission, "p", spec(limit=1))
            first = (await ask(admission, "a", "p")).lease
            second = (await ask(admission, "b", "p")).lease
            third = (await ask(admission, "c", "p")).lease
            assert second.state == third.state == "waiting"
            await admission.change(LeaseRenew(first.id, Proof("me")))
            one.clock.at += 2_500_000
            await admission.change(LeaseRelease(first.id, Proof("me")))
            await admission.change(LeaseRelease(first.id, Proof("me")))
            one.clock.at += 1_000_000
            await admission.change(LeaseRelease(third.id, Proof("me")))
            await admission.change(LeaseRevoke(second.id, "it is\nstuck", by=OnBehalf(TESTER)))
            return [first.id, second.id, third.id]

    ids = asyncio.run(scenario())
    lines = [record.getMessage() for record in caplog.records if record.name == LOG]
    assert [line.split()[:2] for line in lines] == [
        ["granted", f"lease={ids[0]}"],
        ["ended", f"lease={ids[0]}"],
        ["granted", f"lease={ids[1]}"],
        ["ended", f"lease={ids[2]}"],
        ["revoked", f"lease={ids[1]}"],
    ]
    assert all("needs=p=1" in line and "holder='me'" in line for line in lines)
    assert "waited=0.000s" in lines[0]
    assert lines[1].endswith("held=2.500s cause=released")
    assert "waited=2.500s" in lines[2]
    assert "cause=withdrawn" in lines[3]
    assert "held=" not in lines[3]
    assert lines[4].endswith(r"held=1.000s cause=revoked detail='it is\nstuck'")
    assert not any("\n" in line for line in lines)


def test_a_flood_is_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond the bound of a window, lines are counted; the count is written when it ends."""
    caplog.set_level(logging.INFO, logger=LOG)
    monkeypatch.setattr(lease_log, "LINES_MAX", 3)

    async def scenario() -> None:
        async with running(tmp_path / "m.sqlite") as one:
            admission = one.service.admission
            await pool_put(admission, "p", spec(limit=9))
            leases = [(await ask(admission, f"k{n}", "p")).lease for n in range(5)]
            await admission.change(LeaseRelease(leases[0].id, Proof("me")))
            await turns()

    asyncio.run(scenario())
    lines = [record.getMessage() for record in caplog.records if record.name == LOG]
    assert [line.split()[0] for line in lines[:3]] == ["granted"] * 3
    assert lines[3:] == ["1 ends and 2 grants more within 1 s, which are not listed"]
