"""A few long searches run, others wait; a search gives up its place when its client leaves."""

import asyncio
from random import Random
from time import perf_counter

import pytest

from moorage.core.errors import Error
from moorage.core.ledger.search.steps import Steps
from moorage.service import searches as module
from moorage.service.fair_turns import TURN_SECONDS, FairTurns
from moorage.service.searches import ClientGoneError, Searches
from tests.service.searching import Endless, never, next_round


def test_a_client_that_leaves_the_queue_frees_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search whose client leaves while it waits for others no longer counts."""
    monkeypatch.setattr(module, "LONG_MAX", 3)
    monkeypatch.setattr(module, "ABREAST_MAX", 1)

    async def run() -> None:
        searches, left = Searches(FairTurns()), asyncio.Event()

        async def gone() -> None:
            await left.wait()

        endless = [Endless() for _ in range(4)]
        first = asyncio.create_task(searches.driven(endless[0].work(), never))
        waiting = [asyncio.create_task(searches.driven(e.work(), gone)) for e in endless[1:3]]
        while searches.waiting < 3:
            await next_round()
        left.set()
        for task in waiting:
            with pytest.raises(ClientGoneError):
                await asyncio.wait_for(task, 30)
        assert [each.closed for each in endless] == [False, True, True, False]
        assert searches.waiting == 1
        next_one = asyncio.create_task(searches.driven(endless[3].work(), never))
        while searches.waiting < 2:
            await next_round()
        # Nothing is kept of the clients that left: the place goes to the waiting search.
        steps = endless[3].steps
        first.cancel()
        while endless[3].steps == steps:
            await next_round()
        next_one.cancel()
        await asyncio.gather(first, next_one, return_exceptions=True)
        assert searches.waiting == 0 and not searches._long.locked()

    asyncio.run(run())


@pytest.mark.parametrize("seed", range(8))
def test_no_place_of_a_long_search_is_ever_lost(seed: int) -> None:
    """Searches may end with an answer or a fault, by cancellation, or because the client leaves."""

    async def run() -> None:
        random, searches = Random(seed), Searches(FairTurns())

        class OverError(Exception):
            pass

        def work(steps: int, fails: bool) -> Steps[int]:
            for _ in range(steps):
                end = perf_counter() + TURN_SECONDS
                while perf_counter() < end:
                    pass
                yield
            if fails:
                raise OverError
            return steps

        async def one() -> None:
            steps, left = random.randint(0, 9), asyncio.Event()

            async def gone() -> None:
                await left.wait()

            task = asyncio.create_task(searches.driven(work(steps, random.random() < 0.3), gone))
            for _ in range(random.randint(0, 60)):
                await next_round()
            deed = random.choice((left.set, task.cancel, next_round))
            if deed is not next_round:
                deed()
            (ending,) = await asyncio.gather(task, return_exceptions=True)
            expected = (int, OverError, ClientGoneError, asyncio.CancelledError, Error)
            assert isinstance(ending, expected), ending

        await asyncio.wait_for(asyncio.gather(*(one() for _ in range(24))), 60)
        assert searches.waiting == 0
        assert searches._long._value == module.ABREAST_MAX

    asyncio.run(run())
