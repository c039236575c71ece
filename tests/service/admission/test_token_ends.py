"""Tickets of tokens that have ended, and all that one owner has."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from moorage.core.admission.model import Need
from moorage.core.admission.requests import LeaseRequest
from moorage.core.clock import SECOND
from moorage.core.ids import LeaseId
from moorage.service.access.audit import AuditFilter
from moorage.service.admission.ending import AT_ONCE, Clearing
from moorage.service.app import Service
from moorage.service.audit_entries import Actor
from moorage.service.token_ends import TICKETS
from moorage.store.open import open_engine
from tests.core.admission.build import spec
from tests.service.pools import pool_put
from tests.service.running import CLASSES, TESTER, TRAITS, ManualClock, Watched, fatal
from tests.support import cluster

USER = Actor("ci", None, "user")
HOUR = 3_600 * SECOND


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the address of an empty database."""
    return f"sqlite:///{tmp_path / 'm.sqlite'}" if request.param == "sqlite" else cluster.fresh()


@asynccontextmanager
async def served(url: str, clock: ManualClock) -> AsyncIterator[tuple[Service, Watched]]:
    """Run a service on a database, with a pool `p` whose only unit is held."""
    engine = Watched(open_engine(url))
    service = await Service.start(engine, clock, CLASSES, TRAITS, on_fatal=fatal)
    try:
        await pool_put(service.admission, "p", spec(1, ttl_max=9 * HOUR))
        await ask(service, "holder", "shop/other", ttl=9 * HOUR)
        yield service, engine
        assert await service.operations.check() == []
    finally:
        await service.stop()


async def ask(service: Service, key: str, owner: str, ttl: int | None = None) -> LeaseId:
    """Ask for the unit, with the longest patience."""
    wanted = LeaseRequest(owner=owner, key=key, needs=(Need("p", 1),), patience=HOUR, ttl=ttl)
    return (await service.admission.acquire(wanted, USER)).lease.id


async def causes(service: Service, *leases: LeaseId) -> list[str]:
    """Return the causes of the ends of leases, or the states of others."""
    found = [(await service.admission.queries.lease(one)).lease for one in leases]
    return [str(one.cause or one.state) for one in found]


def test_tickets_end_soon_after_their_token(url: str) -> None:
    """Of one that has expired, and of one whose revocation was cut off or made elsewhere.

    The control: tickets of a valid token, and of one that is valid under the same name, stay.
    """

    async def run() -> None:
        clock = ManualClock()
        async with served(url, clock) as (service, _):
            access, tickets = service.access, {}
            for name, lasts in (("expires", 60), ("cut", None), ("valid", None), ("twin", 60)):
                micro = None if lasts is None else lasts * SECOND
                _, token = await access.create(name, "user", "shop", by=TESTER, lasts=micro)
                tickets[name] = await ask(service, name, f"shop/{name}")
                if name == "cut":
                    await access.revoke(token.id, by=TESTER)
            await access.create("twin", "user", "shop", by=TESTER)
            assert await service.token_ends.look() == 1
            assert await causes(service, *tickets.values()) == [
                *("waiting", "revoked", "waiting", "waiting")
            ]
            clock.at += 61 * SECOND
            assert await service.token_ends.look() == 1
            assert await service.token_ends.look() == 0
            assert await causes(service, *tickets.values()) == [
                *("revoked", "revoked", "waiting", "waiting")
            ]
            clock.at += 60 * SECOND
            later = await ask(service, "later", "shop/expires")
            assert await service.token_ends.look() == 0
            assert await causes(service, later) == ["waiting"], "somebody else's of this name"

    asyncio.run(run())


def test_all_of_an_owner_ends_in_batches(url: str) -> None:
    """However many there are: each batch is bounded, and has one audit row; nobody is granted."""

    async def run() -> None:
        clock, count = ManualClock(), 2 * AT_ONCE + 50
        async with served(url, clock) as (service, engine):
            made = (ask(service, f"{n}", "shop/ci") for n in range(count))
            tickets = await asyncio.gather(*made)
            before = engine.transactions
            what = Clearing("shop/ci", TICKETS, "runaway", TESTER)
            cleared = await service.admission.owners.clear(what)
            assert (cleared.tickets, cleared.leases, cleared.more) == (count, 0, False)
            assert engine.transactions - before == 3
            assert {*await causes(service, *tickets)} == {"revoked"}
            rows, _ = await service.audit.page(None, 10, AuditFilter("shop/ci"))
            assert len(rows) == 3

    asyncio.run(run())
