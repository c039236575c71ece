"""Groups, newest-first lines and templates on real databases, with several processes and kills."""

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from moorage.core.admission.model import Lease, PoolSpec
from moorage.core.admission.requests import Proof
from moorage.core.admission.templates import TemplateWish
from moorage.core.clock import SECOND
from moorage.core.errors import Code
from moorage.service.access.audit import AuditFilter
from moorage.service.admission.lease_cases import LeaseOutcome, LeaseRelease
from moorage.service.admission.service import Admission
from moorage.service.admission.template_cases import TemplatePut
from moorage.service.app import Service
from moorage.service.clock import SystemClock
from moorage.store.access.audit import AuditRow
from moorage.store.api import StoreError
from moorage.store.open import open_engine
from tests.service.pools import MINUTE, ask, opened, pass_time, pool_put, refusal, spec, wish
from tests.service.running import CLASSES, TESTER, TRAITS, Watched, fatal, running
from tests.support import cluster

SECONDS = 30.0


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


async def template_put(service: Service, name: str, spec: PoolSpec, **sizes: int) -> None:
    """Create or change a template."""
    wished = TemplateWish(spec, sizes.get("idle", MINUTE), sizes.get("pools_max", 5))
    await service.transactor.submit(TemplatePut(name, TESTER, wished, None))


async def rows_of(service: Service, action: str) -> list[AuditRow]:
    """Return the audit rows of an action."""
    rows, _ = await service.audit.page(None, 9, AuditFilter(action=action))
    return rows


async def lease(admission: Admission, known: Lease) -> Lease:
    """Return a lease as it is now."""
    return (await admission.queries.lease(known.id)).lease


def test_a_superseded_client_is_woken(url: str) -> None:
    """The request that waits is answered at once, and names the newer one."""

    async def scenario(service: Service) -> None:
        admission = service.admission
        await pool_put(admission, "p", spec())
        holder = (await ask(admission, "0", "p", group="g")).lease
        first = (await ask(admission, "1", "p", group="g", patience=MINUTE)).lease
        waiting = asyncio.create_task(admission.waited(first.id, SECONDS))
        await asyncio.sleep(0)
        newer = (await ask(admission, "2", "p", group="g", patience=MINUTE)).lease
        ended = (await asyncio.wait_for(waiting, SECONDS)).lease
        assert (ended.state, ended.cause, ended.superseded_by) == ("ended", "superseded", newer.id)
        known = await lease(admission, holder)
        assert (known.state, known.superseded_by, known.stop_until) == ("granted", newer.id, None)
        (row,) = await rows_of(service, "lease.supersede")
        assert row.target == newer.id
        after = json.loads(row.after or "")
        assert after == {"group": "g", "ended": [first.id], "asked_to_stop": []}

    play(url, scenario)


def test_a_holder_is_woken_that_is_to_stop(url: str) -> None:
    """Who waits only for the end is not: it would ask again at once, and again."""

    async def scenario(service: Service) -> None:
        admission = service.admission
        await pool_put(admission, "p", spec())
        holder = (await ask(admission, "0", "p", group="g")).lease
        told = asyncio.create_task(admission.until_ended(holder.id, SECONDS, or_stop=True))
        ended = asyncio.create_task(admission.until_ended(holder.id, SECONDS))
        await asyncio.sleep(0)
        newer = (await ask(admission, "1", "p", group="g", cancel_running=True)).lease
        seen = (await asyncio.wait_for(told, SECONDS)).lease
        assert (seen.state, seen.superseded_by) == ("granted", newer.id)
        assert seen.stop_until is not None
        at_once = await admission.until_ended(holder.id, SECONDS, or_stop=True)
        assert at_once.lease.state == "granted"
        assert not ended.done()
        await admission.change(LeaseRelease(holder.id, Proof("me")))
        assert (await asyncio.wait_for(ended, SECONDS)).lease.cause == "released"
        assert (await lease(admission, newer)).state == "granted"

    play(url, scenario)


def test_of_many_at_once_one_waits(url: str) -> None:
    """However many ask at the same time, one runs, and all others but one are superseded.

    What comes in one batch is superseded before anything is granted.
    """

    async def scenario(service: Service) -> None:
        admission = service.admission
        await pool_put(admission, "p", spec())
        views = await asyncio.gather(
            *(ask(admission, str(n), "p", group="g", patience=MINUTE) for n in range(40))
        )
        found = [await lease(admission, view.lease) for view in views]
        states = [one.cause or one.state for one in found]
        assert states.count("granted") == 1
        assert states.count("waiting") <= 1
        assert states.count("superseded") == 39 - states.count("waiting")
        pool = (await admission.queries.pool("p")).pool
        assert (pool.occupied, pool.waiting) == (1, states.count("waiting"))

    play(url, scenario)


def test_two_processes_supersede_one_after_the_other() -> None:
    """A group has one waiting ticket, whichever processes its requests come to."""

    async def run() -> None:
        url = cluster.fresh()
        async with opened(url) as one, opened(url) as other:
            await pool_put(one.admission, "p", spec())
            both = [one.admission, other.admission]
            views = await asyncio.gather(
                *(ask(both[n % 2], str(n), "p", group="g", patience=MINUTE) for n in range(40))
            )
            found = [await lease(one.admission, view.lease) for view in views]
            states = [lease.cause or lease.state for lease in found]
            assert states.count("granted") == 1
            assert states.count("waiting") <= 1
            assert states.count("superseded") == 39 - states.count("waiting")

    asyncio.run(run())


def test_lists_of_a_group(url: str) -> None:
    """In the order of requests, in pages, with those of other projects."""

    async def scenario(service: Service) -> None:
        admission = service.admission
        await pool_put(admission, "p", spec(2))
        for n in range(4):
            await ask(admission, str(n), "p", group="g", owner="a/me", patience=MINUTE)
        await ask(admission, "x", "p", group="h", owner="a/me")
        await ask(admission, "y", "p", group="g", owner="b/me", patience=MINUTE)
        queries = admission.queries
        first, following, _ = await queries.leases(None, 3, group="g")
        rest, none, _ = await queries.leases(following, 3, group="g")
        assert [view.lease.key for view in [*first, *rest]] == ["0", "1", "2", "3", "y"]
        assert none is None
        ended, _, _ = await queries.leases(None, 9, state="ended", group="g")
        assert [view.lease.key for view in ended] == ["2"]
        mine, _, _ = await queries.leases(None, 9, owner="b/me", group="g", pool="p")
        assert [view.lease.key for view in mine] == ["y"]

    play(url, scenario)


def test_the_newest_goes_first(url: str) -> None:
    """Across pages of the line; a line has places, but no expected times."""

    async def scenario(service: Service) -> None:
        admission = service.admission
        await pool_put(admission, "p", spec(order="newest"))
        holder = (await ask(admission, "holder", "p")).lease
        for n in range(40):
            await ask(admission, str(n), "p", patience=10 * MINUTE)
        waiting, _, _ = await admission.queries.leases(None, 99, "p", "waiting")
        assert [view.lease.key for view in waiting] == [str(n) for n in range(40)]
        places = [view.standing.position for view in waiting if view.standing is not None]
        assert places == [*range(40, 0, -1)]
        standing = waiting[-1].standing
        assert standing is not None
        assert standing.eta_seconds is None
        assert standing.reason.endswith("; newer requests go first")
        contents = await admission.queries.contents("p", 9, 3)
        assert [view.lease.key for view in contents.tickets] == ["39", "38", "37"]
        for n in reversed(range(35, 40)):
            await admission.change(LeaseRelease(holder.id, Proof("me")))
            (view,), _, _ = await admission.queries.leases(None, 9, "p", "granted")
            holder = view.lease
            assert holder.key == str(n)

    play(url, scenario)


def test_the_preview_of_a_move_counts_the_places_of_such_a_line(url: str) -> None:
    """The oldest ticket is the last one; with a higher priority it would be the first."""

    async def scenario(service: Service) -> None:
        admission = service.admission
        await pool_put(admission, "p", spec(order="newest"))
        await ask(admission, "holder", "p")
        oldest, *_ = [(await ask(admission, str(n), "p")).lease for n in range(3)]
        moves = await admission.queries.moves(oldest, structs.replace(oldest, priority=1))
        assert moves == ["In the line of p it goes from place 3 to 1, before 2 other tickets."]

    play(url, scenario)


def test_tickets_keep_their_places_when_the_order_changes(url: str) -> None:
    """Nothing is written again: new requests follow the new order."""

    async def scenario(service: Service) -> None:
        admission = service.admission
        await pool_put(admission, "p", spec())
        await ask(admission, "holder", "p")
        for key in ("a", "b"):
            await ask(admission, key, "p", patience=10 * MINUTE)
        await pool_put(admission, "p", spec(order="newest"))
        for key in ("c", "d"):
            await ask(admission, key, "p", patience=10 * MINUTE)
        await pool_put(admission, "p", spec())
        await ask(admission, "e", "p", patience=10 * MINUTE)
        contents = await admission.queries.contents("p", 9, 9)
        assert [view.lease.key for view in contents.tickets] == ["d", "c", "a", "b", "e"]

    play(url, scenario)


def test_a_request_needs_pools_of_one_order(url: str) -> None:
    """Two gangs could wait for each other otherwise."""

    async def scenario(service: Service) -> None:
        admission = service.admission
        await pool_put(admission, "p", spec())
        await pool_put(admission, "q", spec(order="newest"))
        assert await refusal(ask(admission, "a", "p", "q")) == Code.INVALID

    play(url, scenario)


def test_a_request_makes_a_pool_and_uses_it(url: str) -> None:
    """In one transaction, with an audit row; the next request finds it."""

    async def scenario(service: Service) -> None:
        admission = service.admission
        await template_put(service, "deploy/*", spec())
        first = (await ask(admission, "a", "deploy/web")).lease
        second = (await ask(admission, "b", "deploy/web", patience=MINUTE)).lease
        assert (first.state, second.state) == ("granted", "waiting")
        (row,) = await rows_of(service, "pool.make")
        assert (row.target, row.after, row.who) == ("deploy/web", '"deploy/*"', TESTER.who)
        (view,) = await admission.queries.templates()
        assert (view.template.name, view.pools) == ("deploy/*", 1)
        assert await refusal(ask(admission, "c", "build/web")) == Code.POOL_UNKNOWN

    play(url, scenario)


def test_two_processes_make_one_pool() -> None:
    """The number of pools is exact, and no request is lost."""

    async def run() -> None:
        url = cluster.fresh()
        async with opened(url) as one, opened(url) as other:
            await template_put(one, "deploy/*", spec(99), pools_max=3)
            both = [one.admission, other.admission]
            views = await asyncio.gather(
                *(ask(both[n % 2], str(n), f"deploy/{n % 5}") for n in range(40)),
                return_exceptions=True,
            )
            refused = [one for one in views if isinstance(one, BaseException)]
            assert {getattr(one, "code", one) for one in refused} == {Code.TEMPLATE_FULL}
            pools, _, _ = await one.admission.queries.pools(None, 9)
            assert len(pools) == 3
            assert sum(pool.pool.occupied for pool in pools) == 40 - len(refused)
            (view,) = await other.admission.queries.templates()
            assert view.pools == 3

    asyncio.run(run())


@pytest.mark.parametrize("after", [0, 1])
def test_a_kill_between(url: str, after: int) -> None:
    """A pool and the ticket that made it are there together, as are both sides of a superseding."""

    async def scenario(service: Service) -> None:
        admission = service.admission
        await template_put(service, "deploy/*", spec())
        await pool_put(admission, "p", spec())
        await ask(admission, "holder", "p")
        await ask(admission, "old", "p", group="g", patience=10 * MINUTE)

    async def dies() -> None:
        engine = Watched(open_engine(url))
        service = await Service.start(engine, SystemClock(), CLASSES, TRAITS, on_fatal=fatal)
        if not after:
            engine.failures.append(StoreError("killed"))
            engine.failures.append(StoreError("killed"))
        with contextlib.suppress(Exception):
            await service.admission.acquire(wish("made", "deploy/web"), TESTER)
        with contextlib.suppress(Exception):
            await service.admission.acquire(
                wish("new", "p", group="g", patience=10 * MINUTE), TESTER
            )
        await service.stop()

    async def again(service: Service) -> None:
        queries = service.admission.queries
        views, _, _ = await queries.leases(None, 99)
        states = {view.lease.key: view.lease.cause or view.lease.state for view in views}
        pools, _, _ = await queries.pools(None, 9)
        names = [view.pool.name for view in pools]
        if after:
            expected = {"holder": "granted", "old": "superseded", "made": "granted"}
            assert states == {**expected, "new": "waiting"}
            assert names == ["deploy/web", "p"]
        else:
            assert states == {"holder": "granted", "old": "waiting"}
            assert names == ["p"]

    play(url, scenario)
    asyncio.run(dies())
    play(url, again)


def test_an_idle_pool_is_collected(tmp_path: Path) -> None:
    """By the sweep, at its time; its ended leases stay, and its name can be used again."""

    async def run() -> None:
        async with running(tmp_path / "m.sqlite") as one:
            admission = one.service.admission
            await template_put(one.service, "deploy/*", spec(), idle=20 * SECOND)
            made: Any = (await ask(admission, "a", "deploy/web")).lease
            await admission.change(LeaseRelease(made.id, Proof("me")))
            await pass_time(one, 19 * SECOND)
            assert (await admission.queries.pool("deploy/web")).pool.occupied == 0
            await pass_time(one, 2 * SECOND)
            assert await refusal(admission.queries.pool("deploy/web")) == Code.POOL_NOT_FOUND
            assert (await lease(admission, made)).cause == "released"
            again = (await ask(admission, "b", "deploy/web")).lease
            assert again.token > made.token

    asyncio.run(run())


def test_a_late_outcome_does_not_outlive_its_pool(tmp_path: Path) -> None:
    """It is reported when the pool is due, and before the sweep: so in the batch that ends both."""

    async def run() -> None:
        async with running(tmp_path / "m.sqlite") as one:
            admission = one.service.admission
            await template_put(one.service, "deploy/*", spec(), idle=20 * SECOND)
            made = (await ask(admission, "a", "deploy/web")).lease
            await admission.change(LeaseRelease(made.id, Proof("me")))
            one.clock.at += 20 * SECOND
            await admission.change(LeaseOutcome(made.id, Proof("me"), "failed", ""))
            assert await refusal(admission.queries.pool("deploy/web")) == Code.POOL_NOT_FOUND
            assert (await lease(admission, made)).outcome == "failed"
            assert await one.service.operations.check() == []

    asyncio.run(run())


def test_many_idle_pools_are_collected_in_steps(tmp_path: Path) -> None:
    """A batch collects as many as it wakes."""

    async def run() -> None:
        async with running(tmp_path / "m.sqlite") as one:
            admission = one.service.admission
            sizes = {"idle": 20 * SECOND, "pools_max": 700}
            await template_put(one.service, "deploy/*", spec(), **sizes)
            views = await asyncio.gather(
                *(ask(admission, str(n), f"deploy/{n}") for n in range(600))
            )
            await asyncio.gather(
                *(admission.change(LeaseRelease(one.lease.id, Proof("me"))) for one in views)
            )
            await pass_time(one, 40 * SECOND)
            assert (await admission.queries.pools(None, 9))[0] == []

    asyncio.run(run())
