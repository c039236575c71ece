"""Background loops, with pauses that the test ends."""

import asyncio
import gc
import logging
import weakref
from collections.abc import Awaitable, Callable

import pytest

from moorage.service.background import Loop

log = logging.getLogger("moorage.test")

RETRY_SECONDS = 7.0

FAULT = -1.0
"""An order to raise an exception."""


class Owner:
    """The owner of a loop whose step waits for orders from the test."""

    def __init__(self) -> None:
        self.loop = Loop(log, "a round failed", RETRY_SECONDS)
        self.orders: asyncio.Queue[float | None] = asyncio.Queue()
        self.pauses: asyncio.Queue[float] = asyncio.Queue()
        self.resumed = asyncio.Semaphore(0)
        self.begun = 0
        self.cancelled = 0

    async def step(self) -> float | None:
        """Execute the next order."""
        self.begun += 1
        try:
            order = await self.orders.get()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if order == FAULT:
            raise ValueError("planted")
        return order

    async def pause(self, seconds: float) -> None:
        """Report the pause, and wait for the test to end it."""
        self.pauses.put_nowait(seconds)
        await self.resumed.acquire()


def run_scenario(scenario: Callable[[Owner], Awaitable[None]]) -> None:
    """Run a scenario with a started loop."""

    async def run() -> None:
        owner = Owner()
        owner.loop.start(owner.step, owner.pause)
        await scenario(owner)

    asyncio.run(run())


def test_steps_and_pauses_take_turns() -> None:
    """Each step is followed by the pause that it returned; the next step begins after the pause."""

    async def scenario(owner: Owner) -> None:
        for seconds in (1.5, 0.0, 3.0):
            owner.orders.put_nowait(seconds)
            assert await owner.pauses.get() == seconds
            owner.orders.put_nowait(9.0)
            await asyncio.sleep(0)
            assert owner.orders.qsize() == 1
            owner.orders.get_nowait()
            owner.resumed.release()
        while owner.begun < 4:
            await asyncio.sleep(0)
        await owner.loop.stop()
        assert owner.cancelled == 1

    run_scenario(scenario)


def test_a_fault_is_logged_and_the_step_repeated(caplog: pytest.LogCaptureFixture) -> None:
    """The message and the exception are logged; the loop pauses for `RETRY_SECONDS`."""

    async def scenario(owner: Owner) -> None:
        owner.orders.put_nowait(FAULT)
        assert await owner.pauses.get() == RETRY_SECONDS
        owner.resumed.release()
        owner.orders.put_nowait(1.0)
        assert await owner.pauses.get() == 1.0
        await owner.loop.stop()

    run_scenario(scenario)
    (record,) = [one for one in caplog.records if one.name == log.name]
    assert record.getMessage() == "a round failed"
    assert record.exc_info is not None and str(record.exc_info[1]) == "planted"


def test_a_step_may_end_the_loop() -> None:
    """A step ends its loop with None. `stop` accepts loops that have ended or never started."""

    async def scenario(owner: Owner) -> None:
        owner.orders.put_nowait(None)
        while asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.sleep(0)
        await owner.loop.stop()
        assert owner.cancelled == 0 and owner.pauses.empty()
        await Loop(log, "", 0.0).stop()

    run_scenario(scenario)


def test_stop_waits_for_the_end_of_the_step() -> None:
    """A cancelled step may still clean up; it has ended when `stop` returns."""
    done = []

    async def run() -> None:
        begun = asyncio.Event()

        async def step() -> float:
            try:
                begun.set()
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0)
                done.append(True)
            return 0.0

        loop = Loop(log, "", 0.0)
        loop.start(step)
        await begun.wait()
        await loop.stop()
        assert done == [True]

    asyncio.run(run())


def test_a_stopped_loop_leaves_no_reference_cycle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its owner is freed without the garbage collector."""

    async def run() -> None:
        owner = Owner()
        owner.loop.start(owner.step, owner.pause)
        owner.orders.put_nowait(FAULT)
        await owner.pauses.get()
        await owner.loop.stop()
        await asyncio.sleep(0)
        there = weakref.ref(owner)
        del owner
        assert there() is None

    monkeypatch.setattr(log, "disabled", True)  # records of the test run refer to the exception
    gc.disable()
    try:
        asyncio.run(run())
    finally:
        gc.enable()
