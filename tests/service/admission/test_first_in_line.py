"""The first ticket of a pool's line, and the holders that its pool names."""

import asyncio
from pathlib import Path

from moorage.core.admission.facts import Changes
from moorage.core.admission.requests import Proof
from moorage.core.service_time import Moment, When
from moorage.service.admission.lease_cases import LeaseRelease
from moorage.service.admission.positions import SHORT, Positions
from moorage.service.admission.service import Admission
from moorage.store.api import Engine, Plan
from tests.service.pools import Scenario, ask, play, pool_put, spec, with_manual_clock
from tests.service.running import Running, T, Watched


def run_scenario(path: Path, scenario: Scenario) -> None:
    """Run a scenario on a database in a folder."""
    play(f"sqlite:///{path}/m.sqlite", scenario)


def test_a_gang_that_lacks_a_unit(tmp_path: Path) -> None:
    """It is first, and the reason why it waits is shown, though a single unit is free."""

    async def scenario(admission: Admission) -> None:
        await pool_put(admission, "p", spec(2))
        await ask(admission, "held", "p")
        assert (await admission.queries.pool("p")).first is None
        wide = await ask(admission, "wide", "p", units=2)
        await ask(admission, "behind", "p")
        first = (await admission.queries.pool("p")).first
        assert first is not None
        assert first.lease.id == wide.lease.id
        assert first.standing is not None
        assert (first.standing.position, first.standing.code) == (1, "limit")
        assert "2 needed, 1 free" in first.standing.reason

    run_scenario(tmp_path, scenario)


def test_the_first_may_wait_for_another_pool(tmp_path: Path) -> None:
    """The reason names the other pool and the holder of its unit."""

    async def scenario(admission: Admission) -> None:
        await pool_put(admission, "here", spec(1))
        await pool_put(admission, "there", spec(1))
        await ask(admission, "held", "there", owner="somebody")
        await ask(admission, "both", "here", "there")
        first = (await admission.queries.pool("here")).first
        assert first is not None
        assert first.standing is not None
        assert "1 of 1 unit of there is held by somebody" in first.standing.reason

    run_scenario(tmp_path, scenario)


def test_the_youngest_may_be_first(tmp_path: Path) -> None:
    """The priority decides, however many came before; a list of pools shows the same."""

    async def scenario(admission: Admission) -> None:
        await pool_put(admission, "p", spec(1))
        held = await ask(admission, "held", "p")
        for n in range(130):
            await ask(admission, f"low-{n}", "p")
        high = await ask(admission, "high", "p", priority=1)
        (view,), _, _ = await admission.queries.pools(None, 10)
        assert view.first is not None
        assert view.first.lease == high.lease
        await admission.change(LeaseRelease(held.lease.id, Proof("me")))
        first = (await admission.queries.pool("p")).first
        assert first is not None
        assert first.lease.key == "low-0"

    run_scenario(tmp_path, scenario)


def test_holders_are_counted_in_full(tmp_path: Path) -> None:
    """All units count; holders with the most units come first, of equals the earliest."""

    async def scenario(admission: Admission) -> None:
        await pool_put(admission, "p", spec(30))
        for n in range(25):
            await ask(admission, f"{n}", "p", owner="early")
        for owner in ("z", "y", "x", "w", "v"):
            await ask(admission, "1", "p", owner=owner)
        await ask(admission, "late", "p")
        first = (await admission.queries.pool("p")).first
        assert first is not None
        assert first.standing is not None
        assert "held by early (25), z, y and 3 more" in first.standing.reason

    run_scenario(tmp_path, scenario)


class FirstLate(Watched):
    """The first `read_aside` returns only when the test permits it."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self.looking, self.go = asyncio.Event(), asyncio.Event()

    async def read_aside(self, plan: Plan[T], *, slow: bool = False) -> T:
        late = not self.looking.is_set()
        self.looking.set()
        answer = await super().read_aside(plan, slow=slow)
        if late:
            await self.go.wait()
        return answer


def test_a_pass_may_be_overtaken(tmp_path: Path) -> None:
    """A caller from before a change is answered, though a later pass was finished first."""

    async def scenario(one: Running) -> None:
        pool = (await pool_put(one.service.admission, "p", spec(1))).pool
        when = When(Moment(pool.updated_at, pool.updated_at), pool.updated_at)
        engine = FirstLate(one.engine.engine)
        standings = Positions(engine, lambda _: when)
        before = asyncio.create_task(standings.first("p"))
        await engine.looking.wait()
        standings.note(Changes(pools={"p": pool}), when)
        assert await standings.first("p") is None
        engine.go.set()
        assert await before is None

    with_manual_clock(tmp_path, scenario)


def test_tickets_of_one_batch_have_different_positions(tmp_path: Path) -> None:
    """All of them wait for the pass over the changed line, not only the caller that began it."""

    async def scenario(admission: Admission) -> None:
        await pool_put(admission, "p", spec(1))
        await ask(admission, "held", "p")
        await ask(admission, "first", "p")
        views = await asyncio.gather(*(ask(admission, str(n), "p") for n in range(4)))
        standings = [view.standing for view in views if view.standing is not None]
        assert [standing.position for standing in standings] == [2, 3, 4, 5]

    run_scenario(tmp_path, scenario)


class Slow(Watched):
    """Each `read_aside` returns only when the test permits it."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self.looks = 0
        self.go = asyncio.Event()

    async def read_aside(self, plan: Plan[T], *, slow: bool = False) -> T:
        self.looks += 1
        answer = await super().read_aside(plan, slow=slow)
        await self.go.wait()
        return answer


def test_passes_over_a_long_line_do_not_pile_up(tmp_path: Path) -> None:
    """However much changes and however many ask, one pass runs, and all share its result."""

    async def scenario(one: Running) -> None:
        admission = one.service.admission
        pool = (await pool_put(admission, "p", spec(1))).pool
        views = await asyncio.gather(*(ask(admission, str(n), "p") for n in range(SHORT + 2)))
        ticket = views[-1].lease
        when = When(Moment(pool.updated_at, pool.updated_at), pool.updated_at)
        engine = Slow(one.engine.engine)
        standings = Positions(engine, lambda _: when)
        engine.go.set()
        assert await standings.of(ticket) is not None
        engine.go.clear()
        engine.looks = 0
        passes = standings._lines._passes
        passes["p"] = passes["p"]._replace(until=0.0)  # now it is old
        asking = []
        for _ in range(10):
            standings.note(Changes(pools={"p": pool}), when)
            asking.append(asyncio.create_task(standings.of(ticket)))
            leases, *_ = await admission.queries.leases(None, 1, "p", None)
            assert len(leases) == 1
        engine.go.set()
        assert None not in await asyncio.gather(*asking)
        assert await standings.of(ticket) is not None
        assert engine.looks == 1

    with_manual_clock(tmp_path, scenario)
