"""Questions to another service: clients take turns, and nobody keeps the others waiting."""

import asyncio
import threading
from collections import Counter
from random import Random

import pytest

from moorage.core.errors import Code, Error
from moorage.faces.auth.lanes import Lane


class Asked:
    """A lane whose questions wait for a gate, and what was asked in which order."""

    def __init__(self, threads: int, asking_max: int) -> None:
        self.lane = Lane("test", threads, asking_max)
        self.gate = threading.Event()
        self.order: list[str] = []

    def ask(self, client: str) -> asyncio.Task[str]:
        """Ask a question. Raises `Error`."""
        return asyncio.create_task(
            self.lane.ask(self.lane.enter(client), lambda: self._put(client))
        )

    def _put(self, client: str) -> str:
        self.order.append(client)
        assert self.gate.wait(10)
        return client


def test_clients_take_turns() -> None:
    """Who came first with many is asked for once before each of the others."""

    async def act() -> None:
        asked = Asked(1, 10)
        tasks = [asked.ask(client) for client in ("a", "a", "a", "a", "b", "c", "b")]
        asked.gate.set()
        assert await asyncio.gather(*tasks) == ["a", "a", "a", "a", "b", "c", "b"]
        assert asked.order == ["a", "a", "b", "c", "a", "b", "a"]

    asyncio.run(act())


def test_who_asks_most_gives_way() -> None:
    """With no room left, the last question of the client with the most is turned away; a client
    with as many is refused, and then questions are as welcome as before.
    """

    async def act() -> None:
        asked = Asked(1, 4)
        first, *kept, last = [asked.ask("a") for _ in range(4)]
        with pytest.raises(Error) as refused:
            asked.ask("a")
        assert refused.value.code is Code.OVERLOADED
        other = asked.ask("b")
        with pytest.raises(Error) as away:
            await last
        assert away.value.code is Code.OVERLOADED
        with pytest.raises(Error):
            asked.ask("b")  # it has one, "a" has two
        asked.gate.set()
        assert await asyncio.gather(first, *kept, other) == ["a", "a", "a", "b"]
        assert await asyncio.gather(*[asked.ask("a") for _ in range(4)]) == ["a"] * 4

    asyncio.run(act())


def test_a_question_that_fails_frees_its_thread() -> None:
    """What it raises is told to who asked, and the next one is asked."""

    async def act() -> None:
        lane = Lane("test", 1, 4)

        def fail() -> None:
            raise OSError("away")

        failing = [asyncio.create_task(lane.ask(lane.enter("a"), fail)) for _ in range(3)]
        told = await asyncio.gather(*failing, return_exceptions=True)
        assert [type(one) for one in told] == [OSError] * 3
        assert await lane.ask(lane.enter("a"), lambda: 5) == 5

    asyncio.run(act())


@pytest.mark.parametrize("seed", range(10))
def test_a_flood_costs_others_little(seed: int) -> None:
    """However many one client asks, all of the others' questions are asked, and soon."""
    random = Random(seed)

    async def act() -> None:
        asked = Asked(2, 32)
        flood: list[asyncio.Task[str]] = []
        others: list[asyncio.Task[str]] = []
        clients = [f"client-{n}" for n in range(10)]
        for client in random.sample(clients, len(clients)):
            for _ in range(random.randrange(40)):
                try:
                    flood.append(asked.ask("flood"))
                except Error as error:
                    assert error.code is Code.OVERLOADED
            others.append(asked.ask(client))
        asked.gate.set()
        assert Counter(await asyncio.gather(*others)) == Counter(clients)
        told = await asyncio.gather(*flood, return_exceptions=True)
        assert all(one == "flood" or isinstance(one, Error) for one in told)
        last = max(asked.order.index(client) for client in clients)
        assert last <= 2 * len(clients) + 2

    asyncio.run(act())


@pytest.mark.parametrize("steps", range(4))
def test_who_is_cancelled_keeps_no_thread(steps: int) -> None:
    """Whenever that is: while it waits for its turn, once the turn has come, while it is asked."""

    async def act() -> None:
        asked = Asked(1, 8)
        before, cancelled, after = (asked.ask(client) for client in "abc")
        asked.gate.set()
        await before
        for _ in range(steps):
            await asyncio.sleep(0)
        cancelled.cancel()
        await asyncio.wait([cancelled])
        assert await asyncio.wait_for(after, 10) == "c"
        assert await asyncio.wait_for(asked.ask("d"), 10) == "d"

    asyncio.run(act())


def test_who_is_cancelled_when_its_turn_comes_keeps_no_thread() -> None:
    """Its turn has come, but nothing is asked yet: the next one is asked all the same."""

    async def act() -> None:
        lane = Lane("test", 1, 8)
        first, second = lane.enter("a"), lane.enter("b")
        second.add_done_callback(lambda _: waiting.cancel())  # before `waiting` goes on
        waiting = asyncio.create_task(lane.ask(second, lambda: 2))
        await asyncio.sleep(0)
        assert await lane.ask(first, lambda: 1) == 1
        await asyncio.wait([waiting])
        assert waiting.cancelled()
        assert await asyncio.wait_for(lane.ask(lane.enter("c"), lambda: 3), 10) == 3

    asyncio.run(act())
