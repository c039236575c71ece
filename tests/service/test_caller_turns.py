"""Callers take turns: each waits for itself, one piece runs at a time, and the rest is refused."""

import asyncio
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.core.errors import Code, Error
from moorage.service.caller_turns import CallerTurns

OF_ONE, TOTAL = 3, 6


async def settled() -> None:
    """Let all tasks run until each waits for something."""
    for _ in range(50):
        await asyncio.sleep(0)


def test_others_wait_for_one_piece_of_a_greedy_caller() -> None:
    """Although it has asked for several before they did."""

    async def run() -> list[str]:
        turns, order = CallerTurns("things", OF_ONE, TOTAL), []

        async def work(who: str) -> None:
            async with turns.of(who):
                order.append(who)
                await asyncio.sleep(0)

        await asyncio.gather(*(work(who) for who in ("a", "a", "a", "b", "c")))
        return order

    order = asyncio.run(run())
    assert order[:3] == ["a", "b", "c"]
    assert sorted(order) == ["a", "a", "a", "b", "c"]


STEPS = st.lists(
    st.tuples(st.sampled_from(["ask", "end", "fail", "leave"]), st.integers(0, 3)), max_size=40
)


@given(steps=STEPS)
def test_turns_are_like_those_of_a_naive_model(steps: list[tuple[str, int]]) -> None:
    """Callers end, fail or leave early; in the end nothing is kept, and all is free again."""

    async def run() -> None:
        turns = CallerTurns("things", OF_ONE, TOTAL)
        running: list[asyncio.Event] = []
        tasks: dict[asyncio.Task[None], str] = {}
        failing = False

        async def work(who: str) -> None:
            async with turns.of(who):
                mine = asyncio.Event()
                running.append(mine)
                try:
                    await mine.wait()
                    if failing:
                        raise RuntimeError
                finally:
                    running.remove(mine)

        for word, number in steps:
            who = "abcd"[number]
            if word == "ask":
                full = len(tasks) >= TOTAL or [*tasks.values()].count(who) >= OF_ONE
                task = asyncio.ensure_future(work(who))
                tasks[task] = who
                await settled()
                if full:
                    with pytest.raises(Error) as refused:
                        task.result()
                    assert refused.value.code is Code.OVERLOADED
                else:
                    assert not task.done()
            elif word == "leave" and tasks:
                (task := [*tasks][number % len(tasks)]).cancel()
            elif running:
                failing = word == "fail"
                running[0].set()
            await settled()
            for task in [one for one in tasks if one.done()]:
                with suppress(Error, RuntimeError, asyncio.CancelledError):
                    task.result()
                del tasks[task]
            assert len(running) == bool(tasks), "one runs, if anybody waits"
        while tasks:
            next(iter(tasks)).cancel()
            await settled()
            tasks = {task: who for task, who in tasks.items() if not task.done()}
        assert not turns._own
        assert not turns._numbers

    asyncio.run(run())
