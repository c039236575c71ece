"""A pool names the old lease that its line waits behind; a healthy pool names none."""

from pathlib import Path
from typing import Any

from moorage.core.admission.model import Need, PoolSpec
from moorage.core.admission.requests import LeaseRequest, Proof
from moorage.core.clock import HOUR, SECOND
from moorage.core.wishes import wanted_of
from moorage.service.admission.handing_cases import LeaseAccept, LeaseOffer
from moorage.service.admission.lease_cases import LeaseRelease
from moorage.service.admission.slots import SlotsAdd
from moorage.service.admission.views import LeaseView, OverstayView
from tests.service.pools import MINUTE, ask, pass_time, pool_pause, pool_put, with_manual_clock
from tests.service.running import TESTER, Running

PASTS = 6


def spec(limit: int | None = 1, **more: Any) -> PoolSpec:
    """Return settings whose leases need not be renewed during the test."""
    return PoolSpec(limit=limit, ttl=100 * HOUR, ttl_max=100 * HOUR, **more)


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


def test_who_takes_a_lease_over_holds_units_that_were_held_before(tmp_path: Path) -> None:
    """The line still stands: nothing was freed, however young the new lease is."""

    async def scenario(one: Running) -> None:
        admission = one.service.admission
        await pool_put(admission, "p", spec())
        await used(one)
        await pool_put(admission, "p", spec(2))
        held = await ask(admission, "held", "p", owner="ann")
        await pass_time(one, SECOND)
        other = await ask(admission, "other", "p", owner="cid")
        await pass_time(one, 5 * MINUTE)
        await ask(admission, "waits", "p")
        before = await overstay(one)
        assert before is not None and (before.lease, before.blocks) == (held.lease.id, True)
        await admission.change(LeaseOffer(other.lease.id, TESTER, Proof("cid"), "dan", MINUTE))
        await admission.change(LeaseAccept(other.lease.id, TESTER, "dan", "k", {}))
        assert await overstay(one) == before
        await admission.change(LeaseOffer(held.lease.id, TESTER, Proof("ann"), "bob", MINUTE))
        taken = await admission.change(LeaseAccept(held.lease.id, TESTER, "bob", "k", {}))
        found = await overstay(one)
        assert found is not None and found.blocks
        assert (found.lease, found.holder) == (taken.lease.id, "bob")
        assert found.granted_at == held.times().granted_at

    with_manual_clock(tmp_path, scenario)


def test_a_line_that_waits_for_a_cooldown_moves(tmp_path: Path) -> None:
    """A long lease is no trouble while the units of others rest; if they are not enough, it is."""

    async def scenario(one: Running) -> None:
        admission = one.service.admission
        await pool_put(admission, "p", spec())
        await used(one)
        await pool_put(admission, "p", spec(2, cooldown=MINUTE))
        await ask(admission, "long", "p", owner="alice")
        await pass_time(one, 4 * MINUTE)
        short = await ask(admission, "short", "p")
        await pass_time(one, MINUTE)
        await admission.change(LeaseRelease(short.lease.id, Proof("me")))
        waits = await ask(admission, "waits", "p")
        first = (await admission.queries.pool("p")).first
        assert first is not None and first.standing is not None
        assert first.standing.code == "resting"
        assert await overstay(one) is None
        await admission.change(LeaseRelease(waits.lease.id, Proof("me")))
        await ask(admission, "both", "p", units=2)
        found = await overstay(one)
        assert found is not None and found.blocks

    with_manual_clock(tmp_path, scenario)


def test_only_a_lease_with_slots_that_are_asked_for_is_named(tmp_path: Path) -> None:
    """A ticket for a slot in Europe does not wait behind one that holds a slot elsewhere."""

    async def scenario(one: Running) -> None:
        admission = one.service.admission
        await pool_put(admission, "p", spec(None, native_slots=True, hold=MINUTE))
        for region in ("eu", "us"):
            added = SlotsAdd("p", [region], {"region": region}, TESTER)
            await one.service.transactor.submit(added)
        old = await asked(one, "us", "old")
        await pass_time(one, 6 * MINUTE)
        await asked(one, "eu", "young")
        waits = await asked(one, "eu", "waits")
        assert await overstay(one) is None
        await admission.change(LeaseRelease(waits.lease.id, Proof("me")))
        await asked(one, "us", "waits-there")
        found = await overstay(one)
        assert found is not None and found.lease == old.lease.id

    async def asked(one: Running, region: str, key: str) -> LeaseView:
        needs = (Need("p", 1, wanted=wanted_of({"region": region})),)
        wish = LeaseRequest(owner="me", key=key, needs=needs, hold=10 * HOUR)
        return await one.service.admission.acquire(wish, TESTER)

    with_manual_clock(tmp_path, scenario)
