"""Handing over with real rows: races, two processes on one database, and a process that dies."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from moorage.core.admission.model import Lease
from moorage.core.admission.requests import Proof
from moorage.core.clock import SECOND
from moorage.core.errors import Code, Error
from moorage.core.ids import LeaseId
from moorage.service.admission.ending import LeaseRevoke
from moorage.service.admission.handing_cases import (
    LeaseAccept,
    LeaseDecline,
    LeaseKeep,
    LeaseOffer,
    LeaseOfferWithdraw,
)
from moorage.service.admission.lease_cases import LeaseCase, LeaseRelease, LeaseRenew, OnBehalf
from moorage.service.admission.service import Admission
from tests.service.admission.test_shared import play as play_pair
from tests.service.pools import MINUTE, ask, play, pool_put, refusal, spec
from tests.service.running import TESTER
from tests.support import cluster

ROUNDS = 4


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the address of an empty database of each engine."""
    return cluster.fresh() if request.param == "postgresql" else f"sqlite:///{tmp_path}/m.sqlite"


def offer(lease: LeaseId, to: str = "bob") -> LeaseOffer:
    """Offer a lease of `ann`."""
    return LeaseOffer(lease, TESTER, Proof("ann"), to, MINUTE)


def accept(lease: LeaseId, key: str, owner: str = "bob") -> LeaseAccept:
    """Accept a lease."""
    return LeaseAccept(lease, TESTER, owner, key, {})


async def outcome(admission: Admission, case: LeaseCase) -> Lease | Code:
    """Return the lease of a case, or why it was refused."""
    try:
        return (await admission.change(case)).lease
    except Error as error:
        return error.code


async def live(admission: Admission, pool: str = "p") -> list[Lease]:
    """Return the leases that have units of a pool."""
    views, _, _ = await admission.queries.leases(None, 100, pool, "granted")
    return [view.lease for view in views]


Rival = Callable[[LeaseId], LeaseCase]
RIVALS: dict[str, Rival] = {
    "release": lambda lease: LeaseRelease(lease, Proof("ann")),
    "revoke": lambda lease: LeaseRevoke(lease, "", by=OnBehalf(TESTER)),
    "withdraw": lambda lease: LeaseOfferWithdraw(lease, TESTER, Proof("ann")),
    "decline": lambda lease: LeaseDecline(lease, TESTER, "bob"),
    "accept": lambda lease: accept(lease, f"other {lease}"),
    "renew": lambda lease: LeaseRenew(lease, Proof("ann")),
    "keep": lambda lease: LeaseKeep(lease, Proof("ann"), None, 30 * SECOND, ""),
}


async def race(one: Admission, other: Admission, name: str, n: int) -> None:
    """Let an acceptance race a rival at another process; exactly one owner has the unit after it.

    Or nobody: then the next one in line has it.
    """
    holder = (await ask(one, f"{name}{n}", "p", owner="ann")).lease
    assert holder.state == "granted", holder
    next_ = (await ask(one, f"next {name}{n}", "p", owner="eve", patience=MINUTE)).lease
    await one.change(offer(holder.id))
    key = f"taken {name}{n}"
    calls = [outcome(one, accept(holder.id, key)), outcome(other, RIVALS[name](holder.id))]
    accepted, rival = await asyncio.gather(*(calls if n % 2 else calls[::-1]))
    if not n % 2:
        accepted, rival = rival, accepted
    (left,) = await live(one)
    pool = (await other.queries.pool("p")).pool
    assert (pool.occupied, len(await live(other))) == (1, 1)
    if isinstance(accepted, Lease):
        assert (left.id, left.owner, left.taken_from) == (accepted.id, "bob", holder.id)
        assert left.token is not None and holder.token is not None and left.token > holder.token
        assert await refusal(one.change(LeaseRenew(holder.id, Proof("ann")))) is Code.LEASE_ENDED
        again = await outcome(other, accept(holder.id, key))
        assert isinstance(again, Lease) and (again.id, again.token) == (left.id, left.token)
    elif name == "accept":
        assert isinstance(rival, Lease) and left.id == rival.id
        assert accepted is Code.NOT_OFFERED
    else:
        assert accepted is Code.NOT_OFFERED, accepted
        assert left.id == (next_.id if name in ("release", "revoke") else holder.id)
    for one_left in (left.id, next_.id):
        await outcome(one, LeaseRevoke(one_left, "", by=OnBehalf(TESTER)))
    assert await live(one) == []


async def races(one: Admission, other: Admission) -> None:
    """Race every rival, in both orders."""
    await pool_put(one, "p", spec(1))
    for name in RIVALS:
        for n in range(ROUNDS):
            await race(one, other, name, n)


def test_an_acceptance_races_everything_else(url: str) -> None:
    """In one process, where they are of one batch or of two."""

    async def scenario(admission: Admission) -> None:
        await races(admission, admission)

    play(url, scenario)


def test_two_processes_race() -> None:
    """On one database, whose lock decides."""
    play_pair(races)


def test_nothing_is_free_between_them(url: str) -> None:
    """The next one in line gets nothing at the revision of the acceptance, nor before its end."""

    async def scenario(admission: Admission) -> None:
        await pool_put(admission, "p", spec(1))
        holder = (await ask(admission, "a", "p", owner="ann")).lease
        wanted = (await ask(admission, "next", "p", owner="eve", patience=MINUTE)).lease.id
        waiting = asyncio.create_task(admission.waited(wanted, 30.0))
        for n in range(10):
            givers = ("ann", "bob") if n % 2 == 0 else ("bob", "ann")
            case = LeaseOffer(holder.id, TESTER, Proof(givers[0]), givers[1], MINUTE)
            await admission.change(case)
            taken = await admission.change(accept(holder.id, f"{n}", givers[1]))
            holder = taken.lease
            assert (await admission.queries.pool("p")).pool.occupied == 1
        assert not waiting.done()
        await admission.change(LeaseRelease(holder.id, Proof(holder.owner)))
        assert (await waiting).lease.state == "granted"

    play(url, scenario)


def test_the_giver_learns_of_it(url: str) -> None:
    """Who waits for the end of its lease is answered when it is accepted."""

    async def scenario(admission: Admission) -> None:
        await pool_put(admission, "p", spec(1))
        holder = (await ask(admission, "a", "p", owner="ann")).lease
        ended = asyncio.create_task(admission.until_ended(holder.id, 30.0))
        await admission.change(offer(holder.id))
        await admission.change(accept(holder.id, "k"))
        assert (await ended).lease.cause == "handed_over"

    play(url, scenario)
