"""A pool names the old lease that its line waits behind; a healthy pool names none."""

from pathlib import Path

from moorage.core.admission.model import PoolSpec
from moorage.core.admission.requests import Proof
from moorage.core.clock import HOUR
from moorage.service.admission.lease_cases import LeaseRelease
from moorage.service.admission.views import OverstayView
from tests.service.pools import MINUTE, ask, pass_time, pool_pause, pool_put, with_manual_clock
from tests.service.running import Running

PASTS = 6


def spec(limit: int = 1) -> PoolSpec:
    """Return settings whose leases need not be renewed during the test."""
    return PoolSpec(limit=limit, ttl=100 * HOUR, ttl_max=100 * HOUR)


async def used(one: Running) -> None:
    """Let some leases of a minute end."""
    admission = one.service.admission
    for number in range(PASTS):
        lease = await ask(admission, f"past-{number}", "p")
        await pass_time(one, MINUTE)
        await admission.change(LeaseRelease(lease.lease.id, Proof("me")))


async def overstay(one: Running) -> OverstayView | None:
    """Return what the pool says, alone and in the list of pools."""
    admission = one.service.admission
    view = await admission.queries.pool("p")
    (listed,), _, _ = await admission.queries.pools(None, 10)
    contents = await admission.queries.contents("p", 10, 10)
    assert view.overstay == listed.overstay == contents.pool.overstay
    return view.overstay


def test_an_old_holder_before_a_line_is_named(tmp_path: Path) -> None:
    """With the lease, its grant and what is usual; not before somebody waits, not while paused."""

    async def scenario(one: Running) -> None:
        admission = one.service.admission
        await pool_put(admission, "p", spec())
        await used(one)
        held = await ask(admission, "held", "p", owner="alice", labels={"host": "ci-7"})
        await pass_time(one, 5 * MINUTE)
        assert await overstay(one) is None
        await ask(admission, "waits", "p")
        found = await overstay(one)
        assert found is not None
        assert (found.lease, found.holder) == (held.lease.id, "ci-7 (alice)")
        assert found.granted_at == held.times().granted_at
        assert (found.usual, found.blocks) == (4 * MINUTE, True)
        await pool_pause(admission, "p", True)
        assert await overstay(one) is None
        await pool_pause(admission, "p", False)
        assert await overstay(one) is not None
        await admission.change(LeaseRelease(held.lease.id, Proof("alice")))
        assert await overstay(one) is None

    with_manual_clock(tmp_path, scenario)


def test_a_busy_pool_is_healthy(tmp_path: Path) -> None:
    """Its leases last as long as usual, however long its line is; a long one beside others, too."""

    async def scenario(one: Running) -> None:
        admission = one.service.admission
        await pool_put(admission, "p", spec())
        await used(one)
        await pool_put(admission, "p", spec(2))
        await ask(admission, "long", "p", owner="alice")
        holder = await ask(admission, "held", "p")
        for number in range(12):
            await pass_time(one, MINUTE)
            following = await ask(admission, f"waits-{number}", "p")
            assert following.lease.state == "waiting"
            assert await overstay(one) is None
            await admission.change(LeaseRelease(holder.lease.id, Proof("me")))
            holder = await ask(admission, f"waits-{number}", "p")
            assert holder.lease.state == "granted"

    with_manual_clock(tmp_path, scenario)


def test_units_that_are_set_aside_are_no_holder(tmp_path: Path) -> None:
    """A ticket that waits for another pool waits for no lease of this one."""

    async def scenario(one: Running) -> None:
        admission = one.service.admission
        await pool_put(admission, "p", spec(2))
        await pool_put(admission, "q", spec())
        await used(one)
        await ask(admission, "old", "p")
        await ask(admission, "other", "q")
        await pass_time(one, 30 * MINUTE)
        await ask(admission, "both", "p", "q")
        assert (await admission.queries.pool("p")).first is not None
        assert (await admission.queries.pool("p")).overstay is None

    with_manual_clock(tmp_path, scenario)
