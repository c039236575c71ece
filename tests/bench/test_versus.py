"""Versions are compared in turns, line by line, and with the goals."""

import asyncio
import shutil
import subprocess
import sys
from dataclasses import replace
from itertools import count, repeat
from pathlib import Path

import pytest

from bench import goals, turns, versus
from bench.baselines import named
from bench.target import ROOT, Moorage, Storage, Unusable
from bench.turns import Burst, Question, Side, compared
from bench.wire import request

FLAT = versus.TINY_FLEETS[0]


@pytest.mark.thorough
@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
def test_two_versions_are_compared_on_every_line(engine: str, tmp_path: Path) -> None:
    """A version compared with itself prints all lines of all fleets, and neither side fails."""
    shutil.copy(ROOT / "docs" / "performance.md", tmp_path)
    command = [sys.executable, "-m", "bench.versus", str(ROOT), "--tiny", "--engine", engine]
    command += ["--original", str(tmp_path), "--write-docs", str(tmp_path)]
    finished = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    about, _, rest = finished.stdout.partition(versus.HEAD)
    table, _, wanted = rest.partition("\n\n")
    assert about.startswith("this version (commit ")
    assert "load average" in about
    fleets = versus.TINY_FLEETS if engine == "sqlite" else versus.TINY_FLEETS[:1]
    lines = table.strip().splitlines()
    assert len(lines) == sum(len(versus.questions_of(hosts)) for hosts in fleets)
    assert all(float(line.split()[-1]) > 0 for line in lines)
    written = (tmp_path / "performance.md").read_text()
    assert wanted.strip() in written
    assert written.count(goals.BEGIN) == written.count(goals.END) == 1


def burst(p50: float, processor: float = 1.0, operations: int = 1_000) -> Burst:
    """Return a burst of a second."""
    return Burst(operations, processor, 1.0, p50 / 1_000)


def test_a_line_shows_how_much_starts_differ() -> None:
    """The range of the starts is shown with their median, as one fast start proves nothing."""
    starts: list[turns.Start] = [
        [[burst(1.0), burst(0.9, 2.0)]] * 3,
        [[burst(2.0, 2.0), burst(2.0, 2.0)]] * 3,
        [[burst(1.0), burst(1.5, 3.0)]] * 3,
    ]
    question = versus.questions_of(FLAT)[0]
    found = compared(FLAT, question, starts, 1, "6ac2812")
    assert found is not None
    told = versus.comparison_line(found).split()
    assert told[-11:-5] == ["6ac2812", "1.000", "1.500", "0.90", "1.50", "1.00"]
    assert told[-5:] == ["1.000", "2.000", "1.00", "3.00", "2.00"]


def test_what_a_side_does_not_answer_is_not_compared() -> None:
    """Rounds without a burst of a side are left out, and so is a line without any."""
    question = versus.questions_of(FLAT)[0]
    starts: list[turns.Start] = [[[burst(1.0), None], [burst(1.0), burst(3.0)]], [[None, None]]]
    found = compared(FLAT, question, starts, 1, "old")
    assert found is not None
    assert found.p50.each == pytest.approx((3.0,))
    assert compared(FLAT, question, [[[burst(1.0), None]]], 1, "old") is None


def test_a_line_that_is_refused_is_left_out_with_the_reason(tmp_path: Path) -> None:
    """The other side is not asked again; if this version refuses, the comparison fails."""
    unknown = Question("unknown", 1, lambda *_: repeat(request("GET", "/nothing")))
    sides = [
        Side(name, Moorage(Storage(tmp_path, name)), count(1), is_own=own)
        for name, own in (("own", True), ("other", False))
    ]
    with sides[0].target, sides[1].target:
        effort = turns.Effort(0.01, 1, 1)
        asyncio.run(turns.measure(unknown, FLAT, sides[1:], effort, first=True))
        assert "404" in sides[1].lacks["unknown"]
        assert not sides[1].asked(unknown)
        (line,) = versus.left_out(FLAT, sides)
        assert "unknown" in line and "other is left out: refused" in line
        with pytest.raises(Unusable):
            asyncio.run(turns.measure(unknown, FLAT, sides, effort, first=True))


def test_every_goal_names_a_line() -> None:
    """What is compared exists: a line of a fleet, and a baseline or the original."""
    lines = {(one.name, one.connections) for f in versus.FLEETS for one in versus.questions_of(f)}
    wanted = goals.goals()
    assert {(goal.line, goal.connections) for goal in wanted} <= lines
    assert {goal.against for goal in wanted} <= {*named(), goals.ORIGINAL}
    assert all((goal.most is None) != (goal.least is None) for goal in wanted)


def test_goals_are_reached_or_not() -> None:
    """Less processor time is a smaller ratio, a higher rate is a greater one."""
    question = Question("schedule loop", 8, lambda *_: iter(()))
    starts: list[turns.Start] = [[[burst(1.0, 1.0), burst(1.0, 2.0, 500)]]]
    found = compared(FLAT, question, starts, 1, "old")
    assert found is not None
    goal = goals.Goal("loop", "schedule loop", 8, "rate", "old", least=2.0)
    cost = replace(goal, figure="processor", least=None, most=0.2)
    rows = goals.table([found], [goal, cost, replace(goal, against="new")]).splitlines()[2:]
    assert rows == [
        "| loop | 1000 /s | old | 500 /s | 2 | at least 2 | yes |",
        "| loop | 1 ms | old | 4 ms | 0.25 | at most 0.2 | no |",
        "| loop | - | new | - | - | at least 2 | not measured |",
    ]
