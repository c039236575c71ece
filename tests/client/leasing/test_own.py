"""Waiting for oneself: an inner block is refused at once, or the own lease is named."""

import asyncio
import logging
import multiprocessing
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator

import pytest

from moorage.client import (
    AsyncClient,
    Client,
    Holding,
    NotGrantedError,
    RefusedError,
    UnreachableError,
)
from moorage.client.run.api_types import LeaseRequest, StrangeAnswerError
from moorage.client.run.lease.api import Leases
from moorage.client.run.lease.nesting import OwnLeases, check_own
from moorage.client.transport import Transport
from moorage.wire.admission import LeaseWanted, NeedWanted
from tests.client.leasing.pools import in_thread, leases, pool_made, serving, waiting
from tests.client.single import BARE, ROOT
from tests.e2e.support.carried import eventually

SECONDS = 30.0
WAIT = "20s"
"""The longest wait of what must not wait at all."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """A server on one database: these rules are the client's."""
    with serving("sqlite", tmp_path_factory.mktemp("leasing")) as where:
        yield where


def refused_for(lease_id: str, call: Callable[[], object]) -> None:
    """Check that a call is refused, and names the own lease."""
    with pytest.raises(NotGrantedError, match=f"your own lease {lease_id} holds") as nested:
        call()
    assert nested.value.why == "nested"


def got(results: list[object]) -> Holding:
    """Return the lease that a thread has acquired."""
    (held,) = results
    assert isinstance(held, Holding), held
    return held


def live(client: Client, pool: str) -> int:
    """Return how many leases and tickets a pool has."""
    return len([one for one in leases(client, pool) if one.state != "ended"])


@pytest.mark.parametrize(("limit", "own", "wanted"), [(1, 1, 1), (3, 2, 2), (2, 2, 1)])
def test_an_inner_block(client: Client, limit: int, own: int, wanted: int) -> None:
    """It is refused if the outer one leaves too little; nothing is left in the line."""
    pool = pool_made(client, f"own/{limit}/{own}", limit=limit)
    with client.lease(pool, own) as outer:
        refused_for(outer.id, client.lease(pool, wanted, wait=WAIT).acquire)
        refused_for(outer.id, client.lease(pool, wanted, key="k", wait=WAIT).acquire)
        assert live(client, pool) == 1
    with client.lease(pool, wanted):
        pass


def test_two_outer_blocks_together(client: Client) -> None:
    """What two blocks hold counts together, also of another pool of the same request."""
    pool, other = pool_made(client, "own/a", limit=2), pool_made(client, "own/b", limit=5)
    with client.lease(pool), client.lease({pool: 1, other: 1}) as second:
        with pytest.raises(NotGrantedError, match="your own lease"):
            client.lease({pool: 1, other: 1}, wait=WAIT).acquire()
        assert second.lost is None


def test_a_quota(client: Client) -> None:
    """A quota that the own leases use up is the same."""
    pool = pool_made(client, "own/quota", limit=5, quota=1)
    with client.lease(pool) as outer:
        refused_for(outer.id, client.lease(pool, wait=WAIT).acquire)


def test_what_fits_goes_on(client: Client) -> None:
    """The control: an inner block for which there is room, now or after others, is granted."""
    pool = pool_made(client, "own/fits", limit=2)
    with client.lease(pool), client.lease(pool):
        pass
    with in_other_context(client, pool) as other, client.lease(pool):
        thread, results = in_thread(client.lease(pool))
        waiting(client, pool)
        other.release()
        thread.join(SECONDS)
        got(results).release()


def in_other_context(client: Client, pool: str) -> "Releasing":
    """Return a lease that another program seems to have."""
    return Releasing(client, pool)


class Releasing:
    """A lease without a block of this process."""

    def __init__(self, client: Client, pool: str) -> None:
        thread, self._results = in_thread(client.lease(pool, about=False))
        thread.join(SECONDS)

    def __enter__(self) -> "Releasing":
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def release(self) -> None:
        """Release it."""
        got(self._results).release()


def test_a_hold_ends_by_itself(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    """An outer lease with a hold ends in time: the inner block waits, and says for what."""
    pool = pool_made(client, "own/hold")
    with (
        caplog.at_level(logging.WARNING, "moorage.client"),
        client.lease(pool, hold="2s") as outer,
        client.lease(pool),
    ):
        pass
    assert f"your own lease {outer.id} holds 1 of 1 units of {pool}" in caplog.text


def test_another_thread(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    """It may wait for the first one, so it waits, and the log names the lease at once."""
    pool = pool_made(client, "own/thread")
    with caplog.at_level(logging.WARNING, "moorage.client"):
        with client.lease(pool, about=False) as outer:
            thread, results = in_thread(client.lease(pool, about=False))
            waiting(client, pool)
            eventually(lambda: f"your own lease {outer.id} holds" in caplog.text or None)
        thread.join(SECONDS)
    got(results).release()


class Failing(Leases):
    """Calls of which the first one about a pool fails."""

    failure: Exception | None = UnreachableError("timed out")

    def units_of(self, pool: str) -> tuple[int, int | None]:
        """Fail once."""
        failure, self.failure = self.failure, None
        if failure is not None:
            raise failure
        return super().units_of(pool)


def test_a_lost_answer(served: tuple[str, str], client: Client) -> None:
    """The server that did not tell is asked again, before the next wait."""
    pool = pool_made(client, "own/lost")
    failing = Failing(Transport(*served))
    with client.lease(pool) as outer:
        ticket = client.admission.ask(LeaseWanted(needs=[NeedWanted(pool=pool)], key="lost"))
        asked = (failing, LeaseRequest(needs=((pool, 1),)), failing.look(ticket.id))
        own, told = OwnLeases([], [outer.id]), list[str]()
        assert not check_own(*asked, own, told.append)
        assert check_own(*asked, own, told.append)
        (line,) = told
        assert f"your own lease {outer.id} holds" in line
        client.admission.release(ticket.id)


@pytest.mark.parametrize(
    ("failure", "is_done"),
    [
        (StrangeAnswerError("no number of units"), True),
        *((RefusedError(status, "c", f"{status}", "-"), True) for status in (400, 403)),
        *((RefusedError(status, "c", f"{status}", "-"), False) for status in (429, 503)),
    ],
    ids=str,
)
def test_a_refusal_is_final(
    served: tuple[str, str], client: Client, failure: Exception, is_done: bool
) -> None:
    """A server that would refuse again is not asked again before every wait."""
    pool, failing = pool_made(client, "own/refused"), Failing(Transport(*served))
    failing.failure = failure
    with client.lease(pool, about=False):
        ticket = client.admission.ask(LeaseWanted(needs=[NeedWanted(pool=pool)], key=str(failure)))
        asked = (failing, LeaseRequest(needs=((pool, 1),)), failing.look(ticket.id))
        assert check_own(*asked, OwnLeases([]), print) is is_done
        client.admission.release(ticket.id)


def test_what_another_thread_releases(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    """Without a block, a lease may be handed to another thread, so it is only named."""
    pool = pool_made(client, "own/handed")
    first = client.lease(pool).acquire()

    def release() -> None:
        eventually(lambda: f"your own lease {first.id} holds" in caplog.text or None)
        first.release()

    thread = threading.Thread(target=release, daemon=True)
    thread.start()
    client.lease(pool, wait=WAIT).acquire().release()
    thread.join(SECONDS)
    assert not thread.is_alive(), "the lease was named"


def test_tasks(served: tuple[str, str], client: Client) -> None:
    """An inner block of the same task is refused."""
    pool = pool_made(client, "own/tasks")

    async def inner(aclient: AsyncClient) -> None:
        async with aclient.lease(pool, wait=WAIT):
            raise AssertionError("it was granted twice")

    async def outer() -> None:
        aclient = AsyncClient(*served)
        async with aclient.lease(pool) as lease:
            with pytest.raises(NotGrantedError, match=f"your own lease {lease.id} holds"):
                await inner(aclient)
        async with aclient.lease(pool):
            assert live(client, pool) == 1

    asyncio.run(outer())


def test_tasks_beside_each_other(
    served: tuple[str, str], client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    """More tasks than units are no mistake: nothing is said. A block that waits for one is."""
    pool = pool_made(client, "own/beside", limit=2)

    async def one(aclient: AsyncClient) -> None:
        async with aclient.lease(pool):
            pass

    async def beside() -> None:
        aclient = AsyncClient(*served)
        await asyncio.gather(*(one(aclient) for _ in range(6)))

    async def inside() -> str:
        aclient = AsyncClient(*served)
        async with aclient.lease(pool, 2) as lease:
            inner = asyncio.create_task(one(aclient))
            while lease.id not in caplog.text:
                await asyncio.to_thread(threading.Event().wait, 0.05)
        await inner
        return lease.id

    with caplog.at_level(logging.WARNING, "moorage.client"):
        asyncio.run(beside())
        assert caplog.text == ""
        held = asyncio.run(asyncio.wait_for(inside(), SECONDS))
    assert f"your own lease {held} holds 2 of 2 units of {pool}" in caplog.text


def test_a_forked_child(served: tuple[str, str], client: Client) -> None:
    """A child that its block has forked is inside of the block."""
    pool = pool_made(client, "own/fork")
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()

    def child() -> None:
        try:
            Client(*served).lease(pool, wait=WAIT).acquire()
        except Exception as failure:
            theirs.send(f"{type(failure).__name__}: {failure}")

    with client.lease(pool) as outer:
        process = context.Process(target=child)
        process.start()
        assert ours.poll(SECONDS), "the child says nothing"
        said = ours.recv()
        assert f"NestedError: your own lease {outer.id} holds" in said
        process.join(SECONDS)


CHILD = """
import sys
from moorage.client import Client
client = Client()
try:
    client.lease(sys.argv[1], wait="2s").acquire().release()
except Exception as error:
    print(error)
"""


def test_a_program_that_a_block_starts(served: tuple[str, str], client: Client) -> None:
    """It cannot know whether the block waits for it, so the own lease is named on its output."""
    pool = pool_made(client, "own/child")
    with client.lease(pool) as outer:
        done = subprocess.run(
            [sys.executable, "-c", CHILD, pool],
            env={
                **BARE,
                "PYTHONPATH": str(ROOT / "src"),
                "MOORAGE_URL": served[0],
                "MOORAGE_TOKEN": served[1],
            },
            capture_output=True,
            text=True,
            check=True,
        )
    assert f"your own lease {outer.id} holds 1 of 1 units of {pool} (process" in done.stderr
