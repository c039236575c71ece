"""Answers about long lines: to read one takes longer than an answer may be old."""

import threading
from pathlib import Path
from typing import Any

import pytest

from moorage.core.admission.forecast.eta import Queue, queue_of
from moorage.service.admission import positions
from moorage.service.admission.ended import EndedKept, EndedLeases
from moorage.service.admission.positions import SHORT
from moorage.service.admission.queries import AdmissionQueries
from moorage.service.caller_turns import CallerTurns
from moorage.store.admission.line_pass import pass_load
from moorage.store.api import Plan
from tests.service.pools import ask, pool_put, spec, with_manual_clock
from tests.service.running import Running, T, Watched

TICKETS = 30


class Counting(Watched):
    """Counts the passes over lines."""

    passes = 0

    async def read_aside(self, plan: Plan[T], *, slow: bool = False) -> T:
        self.passes += getattr(plan, "__name__", "") == pass_load.__name__
        return await super().read_aside(plan, slow=slow)


@pytest.mark.parametrize("old", [True, False])
def test_one_answer_needs_one_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: bool
) -> None:
    """A page of tickets is answered from one pass over their line, also if each pass is too old for
    the next answer when it is done.
    """
    kept = positions._Kept
    if old:
        monkeypatch.setattr(positions, "_Kept", lambda at, _, seen: kept(at, at, seen))

    async def scenario(one: Running) -> None:
        admission = one.service.admission
        await pool_put(admission, "p", spec(1))
        for number in range(TICKETS):
            await ask(admission, str(number), "p")
        engine = Counting(one.engine.engine)
        ended = EndedLeases(engine, EndedKept())
        turns = CallerTurns("reports", 1, 1)
        queries = AdmissionQueries(engine, admission._service_clock, ended, turns)
        page, _, _ = await queries.leases(None, TICKETS, "p", "waiting")
        assert [view.standing and view.standing.position for view in page] == [*range(1, TICKETS)]
        contents = await queries.contents("p", TICKETS, TICKETS)
        assert len(contents.tickets) == TICKETS - 1
        assert engine.passes <= (3 if old else 2), "of two answers, and of the first in line"
        await queries.lease(page[-1].lease.id)
        before = engine.passes
        await queries.lease(page[-1].lease.id)
        assert engine.passes - before == old  # the control

    with_manual_clock(tmp_path, scenario)


@pytest.mark.parametrize("tickets", [SHORT, SHORT + 2])
def test_the_places_of_a_long_line_are_counted_in_a_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tickets: int
) -> None:
    """To count tens of thousands takes longer than the loop may be held."""
    counted: list[tuple[int, bool]] = []

    def counting(*arguments: Any) -> Queue:
        queue = queue_of(*arguments)
        counted.append((len(queue.places), threading.current_thread() is loops))
        return queue

    monkeypatch.setattr(positions, "queue_of", counting)
    loops = threading.current_thread()

    async def scenario(one: Running) -> None:
        admission = one.service.admission
        await pool_put(admission, "p", spec(1))
        for number in range(tickets + 1):
            view = await ask(admission, str(number), "p")
        found = await admission.queries.lease(view.lease.id)
        assert found.standing is not None
        assert found.standing.position == tickets

    with_manual_clock(tmp_path, scenario)
    assert all(on_loop is (places <= SHORT) for places, on_loop in counted)
    assert (max(counted)[0] > SHORT) is (tickets > SHORT)
