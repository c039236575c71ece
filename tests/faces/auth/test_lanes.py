"""A lane to another service: clients take turns, so that none makes the others wait."""

import asyncio
import threading
from collections import Counter
from random import Random

import pytest

from moorage.core.errors import Code, Error
from moorage.faces.auth.lanes import Lane


class GatedLane:
    """A lane whose calls wait for a gate, and the order of the calls."""

    def __init__(self, threads: int, asking_max: int) -> None:
        self.lane = Lane("test", threads, asking_max)
        self.gate = threading.Event()
        self.order: list[str] = []

    def ask(self, client: str) -> asyncio.Task[str]:
        """Start a call for a client. Raises `Error`."""
        return asyncio.create_task(
            self.lane.ask(self.lane.enter(client), lambda: self._put(client))
        )

    def _put(self, client: str) -> str:
        self.order.append(client)
        assert self.gate.wait(10)
        return client


def test_clients_take_turns() -> None:
    """The first call of each client comes before further calls of a client with many."""

    async def act() -> None:
        asked = GatedLane(1, 10)
        tasks = [asked.ask(client) for client in ("a", "a", "a", "a", "b", "c", "b")]
        asked.gate.set()
        assert await asyncio.gather(*tasks) == ["a", "a", "a", "a", "b", "c", "b"]
        assert asked.order == ["a", "a", "b", "c", "a", "b", "a"]

    asyncio.run(act())


def test_a_full_lane_drops_the_largest_client() -> None:
    """A full lane drops the last call of the client with the most calls.

    A new call that would give another client as many is refused; afterwards calls are accepted
    again.
    """

    async def act() -> None:
        asked = GatedLane(1, 4)
        first, *kept, last = [asked.ask("a") for _ in range(4)]
        with pytest.raises(Error) as refused:
            asked.ask("a")
        assert refused.value.code is Code.OVERLOADED
        other = asked.ask("b")
        with pytest.raises(Error) as away:
            await last
        assert away.value.code is Code.OVERLOADED
        with pytest.raises(Error):
            asked.ask("b")  # "b" has one, "a" has two
        asked.gate.set()
        assert await asyncio.gather(first, *kept, other) == ["a", "a", "a", "b"]
        assert await asyncio.gather(*[asked.ask("a") for _ in range(4)]) == ["a"] * 4

    asyncio.run(act())


def test_a_failed_call_frees_its_thread() -> None:
    """The exception is raised to the caller, and the next call is made."""

    async def act() -> None:
        lane = Lane("test", 1, 4)

        def fail() -> None:
            raise OSError("away")

        failing = [asyncio.create_task(lane.ask(lane.enter("a"), fail)) for _ in range(3)]
        results = await asyncio.gather(*failing, return_exceptions=True)
        assert [type(one) for one in results] == [OSError] * 3
        assert await lane.ask(lane.enter("a"), lambda: 5) == 5

    asyncio.run(act())


@pytest.mark.parametrize("seed", range(10))
def test_a_flood_delays_others_only_briefly(seed: int) -> None:
    """Whatever one client sends, the calls of all others are made, and soon."""
    random = Random(seed)

    async def act() -> None:
        asked = GatedLane(2, 32)
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
        results = await asyncio.gather(*flood, return_exceptions=True)
        assert all(one == "flood" or isinstance(one, Error) for one in results)
        last = max(asked.order.index(client) for client in clients)
        assert last <= 2 * len(clients) + 2

    asyncio.run(act())


@pytest.mark.parametrize("steps", range(4))
def test_a_cancelled_call_frees_its_thread(steps: int) -> None:
    """A call may be cancelled while it waits, when its turn comes, or while it is made."""

    async def act() -> None:
        asked = GatedLane(1, 8)
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


def test_a_call_cancelled_at_its_turn_frees_its_thread() -> None:
    """A call that is cancelled at its turn does not prevent the next one."""

    async def act() -> None:
        lane = Lane("test", 1, 8)
        first, second = lane.enter("a"), lane.enter("b")
        second.add_done_callback(lambda _: waiting.cancel())  # runs before `waiting` continues
        waiting = asyncio.create_task(lane.ask(second, lambda: 2))
        await asyncio.sleep(0)
        assert await lane.ask(first, lambda: 1) == 1
        await asyncio.wait([waiting])
        assert waiting.cancelled()
        assert await asyncio.wait_for(lane.ask(lane.enter("c"), lambda: 3), 10) == 3

    asyncio.run(act())
