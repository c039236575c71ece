"""The processor time of one coroutine among others."""

import asyncio
import time

import pytest

from moorage.faces.dashboard.metering import Metered

BUSY_SECONDS = 0.05


def busy() -> None:
    """Use the processor for a while."""
    end = time.thread_time() + BUSY_SECONDS
    while time.thread_time() < end:
        pass


def test_only_its_own_steps_count() -> None:
    """Neither the steps of another task, nor what waits for them."""

    async def one(turn: asyncio.Event, other: asyncio.Event, times: int) -> str:
        for _ in range(times):
            await turn.wait()
            turn.clear()
            busy()
            other.set()
        return "done"

    async def both() -> tuple[str, Metered[str]]:
        first, second = asyncio.Event(), asyncio.Event()
        first.set()
        metered = Metered(one(first, second, 2))
        result, _ = await asyncio.gather(metered.run(), one(second, first, 2))
        return result, metered

    result, metered = asyncio.run(both())
    assert result == "done"
    assert 2 * BUSY_SECONDS <= metered.seconds < 3 * BUSY_SECONDS


def test_errors_pass_both_ways() -> None:
    """What is raised in it reaches the caller; a cancellation reaches it."""
    ended = []

    async def fails() -> None:
        await asyncio.sleep(0)
        raise ValueError("as it should")

    async def waits() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.append("waits")

    async def cancelled() -> None:
        task = asyncio.ensure_future(Metered(waits()).run())
        await asyncio.sleep(0)
        task.cancel()
        await task

    with pytest.raises(ValueError, match="as it should"):
        asyncio.run(Metered(fails()).run())
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancelled())
    assert ended == ["waits"]
