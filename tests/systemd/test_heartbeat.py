"""The heartbeat of a service: ready in time, silent when something that must work does not."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from itertools import count

import pytest

from moorage.systemd.heartbeat import Probe, heartbeat
from moorage.systemd.notifier import Notifier
from moorage.systemd.patience import patient
from tests.systemd.systemd_double import NotifySocket

WATCHDOG_SECONDS = 0.2


def play(act: Callable[[NotifySocket, Notifier], Awaitable[None]]) -> None:
    """Run a part of a test in a loop."""
    with NotifySocket() as double:
        told = Notifier(double.variables(WATCHDOG_SECONDS), pytest.fail)

        async def played() -> None:
            await act(double, told)

        asyncio.run(played())


def test_ready_when_the_service_says_so() -> None:
    """Not before; meanwhile the status says why, and the start may take as long as it works."""

    async def act(double: NotifySocket, told: Notifier) -> None:
        reasons = ["the index is not loaded"]

        def status() -> str:
            return reasons[0] if reasons else "serving"

        async with heartbeat(told, status, is_ready=lambda: not reasons):
            await asyncio.to_thread(double.wait_for, "EXTEND_TIMEOUT_USEC", times=2)
            assert double.all_of("READY") == []
            assert double.all_of("STATUS") == ["the index is not loaded"]
            reasons.clear()
            await asyncio.to_thread(double.wait_for, "STATUS", "serving".__eq__)
            before = len(double.all_of("EXTEND_TIMEOUT_USEC"))
            await asyncio.to_thread(double.wait_for, "WATCHDOG", times=3)
        assert double.all_of("READY") == ["1"]
        assert len(double.all_of("EXTEND_TIMEOUT_USEC")) == before

    play(act)


def test_the_watchdog_begins_with_readiness() -> None:
    """A sign of life would start it, and WatchdogSec= would end a start that may take longer."""

    async def act(double: NotifySocket, told: Notifier) -> None:
        async with heartbeat(told, lambda: "starting"):
            await asyncio.to_thread(double.wait_for, "STATUS")
            with patient(told, "reading", look_seconds=0.01, work=partial(next, busy)):
                await asyncio.to_thread(double.wait_for, "EXTEND_TIMEOUT_USEC", times=5)
            told.ready()
            await asyncio.to_thread(double.wait_for, "WATCHDOG", times=2)
        names = [name for one in double.received for name in one]
        assert names.index("READY") < names.index("WATCHDOG")

    busy = ((float(done), done) for done in count())
    play(act)


@pytest.mark.parametrize("fault", ["hangs", "stops"])
def test_a_start_that_hangs_or_stops_gets_no_more_time(fault: str) -> None:
    """Then TimeoutStartSec= or TimeoutStopSec= ends it."""

    async def act(double: NotifySocket, told: Notifier) -> None:
        beats = count()
        if fault == "stops":
            told.stopping()
        async with heartbeat(told, lambda: str(next(beats)), lambda: fault != "hangs"):
            await asyncio.to_thread(double.wait_for, "STATUS", times=4)
        assert double.all_of("EXTEND_TIMEOUT_USEC") == []

    play(act)


def test_a_question_without_an_answer_silences_it() -> None:
    """An error is an answer; an answer that comes late ends the silence."""

    async def act(double: NotifySocket, told: Notifier) -> None:
        answer: asyncio.Event | None = None
        asked = 0

        async def ask() -> None:
            nonlocal asked
            asked += 1
            if answer is None:
                raise OSError("no route to the database")
            await answer.wait()

        probe = Probe(ask, WATCHDOG_SECONDS)
        told.ready()
        async with heartbeat(told, lambda: "", probe.answered):
            await asyncio.to_thread(double.wait_for, "WATCHDOG", times=5)
            assert asked > 2
            answer = asyncio.Event()
            await asyncio.to_thread(double.silent_for, "WATCHDOG", 2 * WATCHDOG_SECONDS)
            before = len(double.all_of("WATCHDOG"))
            answer.set()
            await asyncio.to_thread(double.wait_for, "WATCHDOG", times=before + 3)
        await probe.close()

    play(act)


def test_a_loop_that_hangs_is_silent() -> None:
    """Nothing beats for it."""

    async def act(double: NotifySocket, told: Notifier) -> None:
        told.ready()
        async with heartbeat(told, lambda: ""):
            await asyncio.to_thread(double.wait_for, "WATCHDOG", times=2)
            double.silent_for("WATCHDOG", 2 * WATCHDOG_SECONDS)  # blocks this loop

    play(act)
