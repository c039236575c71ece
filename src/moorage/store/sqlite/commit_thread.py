"""A thread that works for an event loop, one job after another."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

A = TypeVar("A")

Job = tuple[Callable[[], Any], asyncio.Future[Any], asyncio.AbstractEventLoop]


class CommitThread:
    """Runs jobs in a thread, in their order.

    An executor does the same with three dozen more function calls for each job, and several locks:
    a tenth of a small batch.
    """

    def __init__(self, name: str) -> None:
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._thread = Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def begin(self, work: Callable[[], A]) -> asyncio.Future[A]:
        """Start a job; the future has its outcome. Cancelling it does not stop the job."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[A] = loop.create_future()
        self._jobs.put((work, future, loop))
        return future

    async def idle(self) -> None:
        """Wait until all jobs have ended, even if the caller is cancelled meanwhile."""
        ended = self.begin(_nothing)
        cancelled: asyncio.CancelledError | None = None
        while not ended.done():
            try:
                await asyncio.wait([ended])
            except asyncio.CancelledError as error:
                cancelled = error
        if cancelled is not None:
            raise cancelled

    def close(self) -> None:
        """Finish all jobs, and end the thread. Blocks."""
        self._jobs.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            work, future, loop = job
            with suppress(RuntimeError):  # the loop is closed: nobody waits for the outcome
                try:
                    answer = work()
                except BaseException as error:
                    loop.call_soon_threadsafe(_fail, future, error)
                else:
                    loop.call_soon_threadsafe(_settle, future, answer)
                    del answer
            del job, work, future, loop  # the next job may be long in coming


def _nothing() -> None:
    """Do nothing."""


def _settle(future: asyncio.Future[Any], answer: Any) -> None:
    if not future.done():
        future.set_result(answer)


def _fail(future: asyncio.Future[Any], error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)
