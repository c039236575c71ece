"""Preemption on both engines: who is asked, who is woken, and that nothing is granted before."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from msgspec import json

from moorage.core.admission.facts import Changes
from moorage.core.admission.model import Lease, Need
from moorage.core.admission.requests import Proof
from moorage.core.clock import SECOND
from moorage.core.pool_values import FairShare
from moorage.service.admission.lease_cases import LeaseRelease
from moorage.service.admission.service import Admission
from moorage.service.app import Service
from tests.service.pools import ask, opened, pool_put, spec, wish
from tests.service.running import TESTER
from tests.support import cluster

SECONDS = 30.0
GRACE = 120 * SECOND


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of each engine."""
    return cluster.fresh() if request.param == "postgresql" else f"sqlite:///{tmp_path}/m.sqlite"


def play(url: str, scenario: Callable[[Service], Awaitable[None]]) -> None:
    """Run a scenario on a new service."""

    async def run() -> None:
        async with opened(url) as service:
            await scenario(service)

    asyncio.run(run())


async def now(admission: Admission, known: Lease) -> Lease:
    """Return a lease as it is now."""
    return (await admission.queries.lease(known.id)).lease


def test_the_holder_is_woken_and_makes_room(url: str) -> None:
    """Of three, the newest of the lowest priority; its units are granted when it has ended."""

    async def scenario(service: Service) -> None:
        admission = service.admission
        await pool_put(admission, "p", spec(3))
        await pool_put(admission, "q", spec(1))
        first = (await ask(admission, "0", "p", preemptible=GRACE)).lease
        above = (await ask(admission, "1", "p", preemptible=GRACE, priority=1)).lease
        newest = (await ask(admission, "2", "p", preemptible=GRACE)).lease
        other = (await ask(admission, "3", "q", preemptible=GRACE)).lease
        told = asyncio.create_task(admission.until_ended(newest.id, SECONDS, or_stop=True))
        await asyncio.sleep(0)
        ticket = (await ask(admission, "4", "p", priority=2)).lease
        assert ticket.state == "waiting"
        seen = (await asyncio.wait_for(told, SECONDS)).lease
        assert (seen.state, seen.preempted_by) == ("granted", ticket.id)
        for one in (first, above, other):
            assert (await now(admission, one)).stop_until is None
        assert (await now(admission, ticket)).state == "waiting"
        await admission.change(LeaseRelease(newest.id, Proof("me")))
        assert (await now(admission, ticket)).state == "granted"

    play(url, scenario)


def test_a_lease_of_several_pools_is_asked_for_a_ticket_of_one(url: str) -> None:
    """Nothing else of that batch is about the other pools; and it counts while it stops."""

    async def scenario(service: Service) -> None:
        admission = service.admission
        await pool_put(admission, "p", spec(2))
        await pool_put(admission, "q", spec(1))
        other = (await ask(admission, "other", "p", preemptible=GRACE)).lease
        both = (await ask(admission, "both", "p", "q", preemptible=GRACE)).lease
        assert (other.state, both.state) == ("granted", "granted")
        ticket = (await ask(admission, "ticket", "p", priority=1)).lease
        assert (await now(admission, both)).preempted_by == ticket.id
        await ask(admission, "behind", "p")
        assert (await now(admission, other)).stop_until is None

    play(url, scenario)


def test_it_is_audited_counted_and_explained(url: str) -> None:
    """Who stopped the lease, for whom and why; a ticket behind it waits for what all wait for."""

    async def scenario(service: Service) -> None:
        admission = service.admission
        await pool_put(admission, "p", spec(2))
        await ask(admission, "0", "p")
        low = (await ask(admission, "1", "p", owner="nightly", preemptible=GRACE)).lease
        high = (await ask(admission, "2", "p", owner="urgent", priority=1)).lease
        behind = (await ask(admission, "3", "p")).lease
        rows, _ = await service.audit.page(None, 10)
        (row,) = [one for one in rows if one.action == "lease.preempt"]
        assert (row.who, row.role, row.target) == ("preemption", "", low.id)
        before = {"owner": "nightly", "needs": {"p": 1}, "priority": 0}
        assert json.decode(row.before or "") == before
        after = json.decode(row.after or "")
        assert row.at <= after.pop("until") <= row.at + GRACE
        reason = {"rule": "priority", "for": high.id, "for_owner": "urgent", "for_pool": "p"}
        assert after == reason | {"for_priority": 1}
        assert admission.tally.preempted == {("p", "p", "priority"): 1}
        seen = (await admission.queries.lease(high.id)).standing
        assert seen is not None
        assert seen.code == "stopping"
        text = "first in line; stopping: 1 lease was asked to stop for it, within "
        assert seen.reason.startswith(text), seen.reason
        other = (await admission.queries.lease(behind.id)).standing
        assert other is not None
        assert other.code == "ahead"
        await admission.change(LeaseRelease(low.id, Proof("nightly")))
        rows, _ = await service.audit.page(None, 10)
        assert [one.action for one in rows].count("lease.preempt") == 1
        assert admission.tally.preempted == {("p", "p", "priority"): 1}

    play(url, scenario)


def test_the_rule_is_in_the_audit_trail(url: str) -> None:
    """By share within a pool, and by loan from another pool, whose lease is counted there."""

    async def scenario(service: Service) -> None:
        admission = service.admission
        await pool_put(admission, "p", spec(3, fair_share=FairShare("owner", GRACE)))
        for key in "012":
            await ask(admission, key, "p", owner="a", preemptible=GRACE)
        await ask(admission, "3", "p", owner="b")
        await pool_put(admission, "a", spec(1, cohort="c", borrowing=2))
        await pool_put(admission, "b", spec(1, cohort="c"))
        for key in "45":
            await ask(admission, key, "a", preemptible=GRACE)
        ticket = (await ask(admission, "6", "b")).lease
        rows, _ = await service.audit.page(None, 20)
        found = [json.decode(one.after or "") for one in rows if one.action == "lease.preempt"]
        assert [one["rule"] for one in found] == ["loan", "share"]
        assert admission.tally.preempted == {
            ("p", "p", "share"): 1,
            ("a", "b", "loan"): 1,
        }
        seen = (await admission.queries.lease(ticket.id)).standing
        assert seen is not None
        assert seen.code == "stopping"

    play(url, scenario)


def test_the_pool_is_that_of_the_alternative_that_a_ticket_waits_for(url: str) -> None:
    """Not of another one, in which nobody stops for it. Counters go with either pool."""

    async def scenario(service: Service) -> None:
        admission = service.admission
        for name in "ab":
            await pool_put(admission, name, spec(1))
            await ask(admission, name, name, preemptible=GRACE)
        either = wish("ticket", priority=1).any_of([[Need("b", 1)], [Need("a", 1)]])
        await admission.acquire(either, TESTER)
        rows, _ = await service.audit.page(None, 20)
        (after,) = (json.decode(one.after or "") for one in rows if one.action == "lease.preempt")
        assert (after["rule"], after["for_pool"]) == ("priority", "b")
        assert admission.tally.preempted == {("b", "b", "priority"): 1}
        admission.tally.note(Changes(pools={"b": None}), await admission.queries.now())
        assert not admission.tally.preempted

    play(url, scenario)


def test_a_restart_changes_nothing(url: str) -> None:
    """Who is asked stays asked, for the same ticket; nobody else is."""

    async def asks(service: Service) -> None:
        admission = service.admission
        await pool_put(admission, "p", spec(2))
        for key in "01":
            await ask(admission, key, "p", preemptible=GRACE)
        await ask(admission, "2", "p", priority=1)

    async def again(service: Service) -> None:
        admission = service.admission
        await ask(admission, "3", "p")
        views, _, _ = await admission.queries.leases(None, 9)
        asked = {view.lease.key: view.lease.preempted_by for view in views if view.lease.stop_until}
        (ticket,) = (view.lease.id for view in views if view.lease.key == "2")
        assert asked == {"1": ticket}

    play(url, asks)
    play(url, again)


def test_the_owner_of_lent_units_gets_them_back(url: str) -> None:
    """The leases of all pools of the cohort are looked at."""

    async def scenario(service: Service) -> None:
        admission = service.admission
        await pool_put(admission, "a", spec(1, cohort="c", borrowing=2))
        await pool_put(admission, "b", spec(1, cohort="c"))
        mine = (await ask(admission, "0", "a", preemptible=GRACE, priority=9)).lease
        lent = (await ask(admission, "1", "a", preemptible=GRACE, priority=9)).lease
        ticket = (await ask(admission, "2", "b")).lease
        assert (await now(admission, lent)).preempted_by == ticket.id
        assert (await now(admission, mine)).preempted_by is None
        await admission.change(LeaseRelease(lent.id, Proof("me")))
        assert (await now(admission, ticket)).state == "granted"

    play(url, scenario)
