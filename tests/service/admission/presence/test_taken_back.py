"""A grant that nobody confirms is taken back, and its ticket keeps its place."""

from pathlib import Path

from moorage.core.admission.bars import PRESENCE
from moorage.core.admission.model import CONFIRM_WITHIN
from moorage.core.admission.requests import Proof
from moorage.core.clock import SECOND
from moorage.service.admission.lease_cases import LeaseRelease
from moorage.service.batch.ledger_share import LeaseAllocations
from tests.service.pools import ask, pass_time, pool_put, spec, with_manual_clock
from tests.service.running import Running, consumer_id

PATIENCE = 600 * SECOND


def test_a_client_with_long_pauses_learns_of_its_grant(tmp_path: Path) -> None:
    """Its pauses are longer than a grant lasts unconfirmed; a poll tells of what it gets by it."""

    async def scenario(one: Running) -> None:
        admission = one.service.admission
        await pool_put(admission, "p", spec(1))
        holder = (await ask(admission, "holder", "p")).lease.id
        slow = (await ask(admission, "slow", "p", attended=True, patience=PATIENCE)).lease.id
        await pass_time(one, 2 * SECOND)
        await admission.change(LeaseRelease(holder, Proof("me")))
        assert (await admission.queries.lease(slow)).lease.state == "granted"
        await pass_time(one, CONFIRM_WITHIN + SECOND)
        assert (await admission.queries.lease(slow)).lease.state == "waiting"
        await pass_time(one, PRESENCE)
        assert (await admission.waited(slow, 0.0)).lease.state == "granted"

    with_manual_clock(tmp_path, scenario)


def test_allocations_are_freed_with_a_grant_that_is_taken_back(tmp_path: Path) -> None:
    """They are taken again with the next grant, and freed at its end."""

    async def scenario(one: Running) -> None:
        host = await one.provider(1, VCPU=1)
        admission = one.service.admission
        await pool_put(admission, "p", spec(1))
        held = LeaseAllocations(consumer_id(1), {host: {"VCPU": 1}}, "project", "user", "INSTANCE")
        more = {"allocations": held, "attended": True, "patience": PATIENCE}
        lease = (await ask(admission, "a", "p", **more)).lease
        assert (lease.state, one.used(host)) == ("granted", 1)
        await pass_time(one, CONFIRM_WITHIN + SECOND)
        assert (await admission.queries.lease(lease.id)).lease.state == "waiting"
        assert one.used(host) == 0
        assert (await ask(admission, "a", "p", **more)).lease.state == "granted"
        assert one.used(host) == 1
        await admission.change(LeaseRelease(lease.id, Proof("me")))
        assert one.used(host) == 0

    with_manual_clock(tmp_path, scenario)
