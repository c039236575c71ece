"""Actions that are tried first, and pauses that end by themselves, on both engines."""

import asyncio
import random
from pathlib import Path

import pytest

from moorage.core.admission.model import Pacing
from moorage.core.admission.requests import Proof
from moorage.core.clock import SECOND
from moorage.core.errors import Code, Error
from moorage.core.ids import LeaseId
from moorage.service.acting import Acting, Outlook
from moorage.service.admission.ending import LeaseRevoke
from moorage.service.admission.lease_cases import LeaseHold, OnBehalf, TicketForce, TicketMove
from moorage.service.admission.pool_cases import PoolPause, PoolTune
from moorage.service.admission.service import Admission
from moorage.service.app import Service
from tests.service.pools import MINUTE, ask, opened, pass_time, pool_put, spec, with_manual_clock
from tests.service.running import TESTER, Running
from tests.support import cluster

POOL = "p"


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database of each engine."""
    return cluster.fresh() if request.param == "postgres" else f"sqlite:///{tmp_path}/m.sqlite"


def some_action(dice: random.Random, leases: list[LeaseId]) -> Acting:
    """Return any action on the pool, or on one of its leases."""
    lease, by, lasts = dice.choice(leases), OnBehalf(TESTER), dice.choice([None, MINUTE])
    pacing = dice.choice([None, None, Pacing(interval=3_600 * SECOND, burst=2)])
    case, about = dice.choice(
        [
            (PoolTune(POOL, TESTER, dice.randrange(1, 12), pacing), {"pool": POOL}),
            (PoolTune(POOL, TESTER, dice.randrange(1, 12), None), {"pool": POOL}),
            (PoolPause(POOL, TESTER, True, lasts=lasts), {"pool": POOL, "lasts": lasts}),
            (PoolPause(POOL, TESTER, False), {"pool": POOL}),
            (LeaseRevoke(lease, "test", by=by), {"lease": lease}),
            (TicketMove(lease, dice.choice([None, 3]), by=by), {"lease": lease}),
            (TicketForce(lease, by=by), {"lease": lease}),
        ]
    )
    return Acting(case, ("test",), **about)


async def states(admission: Admission, leases: list[LeaseId]) -> dict[LeaseId, str]:
    """Return the states of leases."""
    return {one.id: one.state for one in await admission.queries.leases_of(leases)}


async def carried_out(service: Service, acting: Acting) -> tuple[Outlook, Outlook] | None:
    """Look at an action, then carry it out; None: it is refused, as it is afterwards."""
    try:
        shown = await service.transactor.submit(acting)
    except Error as refusal:
        assert refusal.code in {Code.NOT_WAITING, Code.INVALID}
        return None
    acting.digest = shown.digest
    return shown, await service.transactor.submit(acting)


def test_what_is_done_is_what_was_shown(url: str) -> None:
    """Whatever is done, in whatever state: the preview changes nothing, and names all that does."""

    async def scenario() -> None:
        dice = random.Random(45)
        async with opened(url) as service:
            admission = service.admission
            await pool_put(admission, POOL, spec(3))
            leases: list[LeaseId] = []
            done = 0
            for number in range(120):
                if number % 2 == 0:
                    leases.append((await ask(admission, str(number), POOL)).lease.id)
                acting = some_action(dice, leases)
                before = await states(admission, leases)
                revision = service.index.revision
                found = await carried_out(service, acting)
                after = await states(admission, leases)
                if found is None:
                    assert after == before
                    continue
                done += 1
                shown, told = found
                assert (shown.lines, shown.effect, shown.audit) == (told.lines, told.effect, ())
                assert service.index.revision >= revision
                effect = told.effect
                changed = {one for one in leases if before[one] != after[one]}
                assert changed == {*effect.leases_end, *effect.tickets_end, *effect.tickets_start}
                assert all(after[one] == "granted" for one in effect.tickets_start)
                assert all(before[one] == "granted" for one in effect.leases_end)
                assert all(before[one] == "waiting" for one in effect.tickets_end)
            assert done > 60

    asyncio.run(scenario())


def test_two_operators_have_one_effect(url: str) -> None:
    """Both have seen the same; the second one is not done, because it would do nothing more."""

    async def scenario() -> None:
        async with opened(url) as service:
            admission = service.admission
            await pool_put(admission, POOL, spec(1))
            for number in range(4):
                await ask(admission, str(number), POOL)
            acting = [Acting(PoolTune(POOL, TESTER, 3, None), (), pool=POOL) for _ in range(2)]
            for one in acting:
                one.digest = (await service.transactor.submit(one)).digest
            assert acting[0].digest == acting[1].digest
            done = await asyncio.gather(
                *(service.transactor.submit(one) for one in acting), return_exceptions=True
            )
            refusals = [one for one in done if isinstance(one, Error)]
            assert [one.code for one in refusals] == [Code.EFFECT_CHANGED]
            rows, _ = await service.audit.page(None, 10)
            assert [row.action for row in rows].count("pool.put") == 2

    asyncio.run(scenario())


def test_a_pause_ends_by_itself(tmp_path: Path) -> None:
    """In time; the server is the author of its end, and waiting tickets start."""

    async def scenario(one: Running) -> None:
        admission = one.service.admission
        await pool_put(admission, POOL, spec(1))
        await admission.change_pool(PoolPause(POOL, TESTER, True, "rack 7", lasts=10 * MINUTE))
        ticket = (await ask(admission, "a", POOL, patience=3_600 * SECOND)).lease.id
        await pass_time(one, 10 * MINUTE - 2 * SECOND)
        view = await admission.queries.pool(POOL)
        assert (view.pool.paused, view.paused_until) == (True, one.clock.at + 2 * SECOND)
        await pass_time(one, 3 * SECOND)
        assert not (await admission.queries.pool(POOL)).pool.paused
        assert (await admission.queries.lease(ticket)).lease.state == "granted"
        rows, _ = await one.service.audit.page(None, 10)
        ended = [row for row in rows if row.action == "pool.resume"]
        assert [(row.who, row.target, row.after) for row in ended] == [("moorage", POOL, "false")]

    with_manual_clock(tmp_path, scenario)


def test_a_pause_for_a_while_is_confirmed_later(tmp_path: Path) -> None:
    """Its end moves on while its operator reads: it lasts from the moment at which it is done."""

    async def scenario(one: Running) -> None:
        admission = one.service.admission
        await pool_put(admission, POOL, spec(1))
        pause = PoolPause(POOL, TESTER, True, lasts=10 * MINUTE)
        acting = Acting(pause, ("test",), pool=POOL, lasts=pause.lasts)
        shown = await one.service.transactor.submit(acting)
        assert shown.lines[0] == f"{POOL} grants nothing for 10m."
        await pass_time(one, 3 * SECOND)
        acting.digest = shown.digest
        done = await one.service.transactor.submit(acting)
        assert (done.lines, len(done.audit)) == (shown.lines, 1)
        view = await admission.queries.pool(POOL)
        assert view.paused_until is not None
        assert view.paused_until - one.clock.at > 10 * MINUTE - SECOND

    with_manual_clock(tmp_path, scenario)


def test_a_clock_that_was_set_is_no_other_effect(tmp_path: Path) -> None:
    """It shows other times of day, and nothing else is done."""

    async def scenario(one: Running) -> None:
        admission = one.service.admission
        await pool_put(admission, POOL, spec(1))
        lease = (await ask(admission, "a", POOL, hold=60 * MINUTE)).lease.id
        await admission.change_pool(PoolPause(POOL, TESTER, True, lasts=10 * MINUTE))

        def held() -> Acting:
            proof, by = Proof(None), OnBehalf(TESTER)
            return Acting(LeaseHold(lease, proof, 20 * MINUTE, by=by), ("hold",), lease=lease)

        def tuned() -> Acting:
            return Acting(PoolTune(POOL, TESTER, 2, None), ("tune",), pool=POOL)

        for acting in (held, tuned):
            shown = await one.service.transactor.submit(acting())
            one.clock.jump += 7 * SECOND
            again = acting()
            again.digest = shown.digest
            done = await one.service.transactor.submit(again)
            assert done.lines != shown.lines
            assert (done.effect, len(done.audit)) == (shown.effect, 1)

    with_manual_clock(tmp_path, scenario)


def test_a_busy_pool_can_be_paused(url: str) -> None:
    """Who joins the line meanwhile is no other effect; who is granted by a higher limit is."""

    async def scenario() -> None:
        async with opened(url) as service:
            admission = service.admission
            await pool_put(admission, POOL, spec(1))
            for number in range(3):
                await ask(admission, str(number), POOL)
            pause = Acting(PoolPause(POOL, TESTER, True), ("pause",), pool=POOL)
            tune = Acting(PoolTune(POOL, TESTER, 9, None), ("tune",), pool=POOL)
            for acting in (pause, tune):
                acting.digest = (await service.transactor.submit(acting)).digest
            await ask(admission, "late", POOL)
            with pytest.raises(Error) as refused:
                await service.transactor.submit(tune)
            assert refused.value.code is Code.EFFECT_CHANGED
            done = await service.transactor.submit(pause)
            assert "3 tickets are waiting, and wait on." in done.lines

    asyncio.run(scenario())
