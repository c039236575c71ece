"""The thread that commits: it outlives errors, cancelled callers and closed loops."""

import asyncio
from collections.abc import Iterator
from threading import Event

import pytest

from moorage.store.sqlite.commit_thread import CommitThread


@pytest.fixture
def thread() -> Iterator[CommitThread]:
    """A thread that ends with the test."""
    found = CommitThread("test-commit")
    yield found
    found.close()


def test_outcomes(thread: CommitThread) -> None:
    """An answer, and an error, after which the thread goes on."""

    async def scenario() -> None:
        assert await thread.begin(lambda: 5) == 5
        with pytest.raises(ZeroDivisionError):
            await thread.begin(lambda: 1 // 0)
        assert await answered(thread) == 6

    asyncio.run(scenario())


async def answered(thread: CommitThread) -> int:
    """Return the answer of one more job."""
    return await thread.begin(lambda: 6)


def test_a_cancelled_caller_does_not_stop_its_job(thread: CommitThread) -> None:
    """`idle` returns when the job has ended, and not before, even if it is cancelled as well."""
    begun, may_end, ended = Event(), Event(), Event()

    def work() -> None:
        begun.set()
        may_end.wait()
        ended.set()

    async def scenario() -> None:
        job = thread.begin(work)
        await asyncio.to_thread(begun.wait)
        job.cancel()
        idle = asyncio.ensure_future(thread.idle())
        await asyncio.sleep(0)
        idle.cancel()
        await asyncio.sleep(0)
        assert not idle.done()
        may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await idle
        assert ended.is_set()

    asyncio.run(scenario())


def test_a_loop_that_closes_meanwhile(thread: CommitThread) -> None:
    """The thread works for the next loop."""
    may_end = Event()

    async def abandoned() -> None:
        thread.begin(may_end.wait)

    asyncio.run(abandoned())
    may_end.set()
    assert asyncio.run(asyncio.wait_for(answered(thread), 30)) == 6
