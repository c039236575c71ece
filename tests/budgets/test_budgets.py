"""Budgets are exceeded by little more work, and may only fall."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.budgets import budget, instructions
from tests.budgets.__main__ import judgement, table
from tests.budgets.counting import CALL, HANDED, HOP, RESUME, STATEMENT
from tests.budgets.figures import WAYS, Figure, measure

PLANTED = 20
"""Calls; a claim alone makes some hundreds."""

SOFTWARE = "task-clock"

SHAKE = 0.005
"""How much two runs may differ."""


def measured(folder: Path, planted: int = 0) -> list[Figure]:
    """Measure claims and their releases with a new server."""
    folder.mkdir()
    return measure(folder, planted=planted, only="claim")


@pytest.fixture(scope="module")
def claims(tmp_path_factory: pytest.TempPathFactory) -> list[Figure]:
    """What claims and their releases cost."""
    return measured(tmp_path_factory.mktemp("budgets") / "once")


def test_two_runs_count_the_same(claims: list[Figure], tmp_path: Path) -> None:
    """Chance changes nothing that matters."""
    for one, other in zip(claims, measured(tmp_path / "again"), strict=True):
        for kind, number in one.numbers.items():
            assert other.numbers[kind] == pytest.approx(number, rel=SHAKE), (one, kind)


def test_planted_calls_exceed_a_budget(claims: list[Figure], tmp_path: Path) -> None:
    """A few calls more are refused alone and in a batch, and named."""
    budgets = filled(tmp_path / "budgets.toml", claims)
    assert judgement(claims, budgets) == ([], 0)
    lines, code = judgement(measured(tmp_path / "planted", PLANTED), budgets)
    assert code == 1
    for way in WAYS:
        assert any(line.startswith(f"over budget: claim, {way}") for line in lines)
    planted = f"{PLANTED} tests/budgets/counted_server.py plant.<locals>.planted"
    assert sum(line.endswith(planted) for line in lines) >= len(WAYS)


def test_all_kinds_are_counted(claims: list[Figure]) -> None:
    """A claim calls functions, resumes coroutines, goes to a thread and back, and writes."""
    claim, release, *_ = claims
    assert [claim.operation, release.operation] == ["claim", "release"]
    assert claim.numbers[CALL] > claim.numbers[RESUME] > claim.numbers[STATEMENT] > 1
    assert dict(claim.most[HOP]) == {HANDED: 1, "to the loop": 1}
    assert "COMMIT" in dict(claim.most[STATEMENT])


@pytest.mark.skipif(not instructions.countable(SOFTWARE), reason="perf is missing")
def test_perf_counts_what_each_operation_does(tmp_path: Path) -> None:
    """An event that every machine can count stands for the instructions of the processor."""
    found = list(instructions.measure(tmp_path, only="claim", event=SOFTWARE))
    assert [(one.operation, one.way) for one in found] == [
        (operation, way) for way in WAYS for operation in ("claim", "release")
    ]
    assert all(one.number > 0 for one in found)
    assert not instructions.countable("nothing:u")


def figure(calls: float, statements: float = 4.0) -> Figure:
    """Return a figure of an operation."""
    numbers = {CALL: calls, RESUME: 10.0, HOP: 0.0, STATEMENT: statements}
    return Figure("claim", "alone", numbers, {kind: [(f"a {kind}", 1.0)] for kind in numbers})


def both_ways(alone: Figure) -> list[Figure]:
    """Return a figure for an operation alone, and an equal one for a batch."""
    return [alone, replace(alone, way="batch")]


def filled(path: Path, figures: list[Figure]) -> budget.Budgets:
    """Write budgets to a new file and return them."""
    path.touch()
    budget.write(figures, raised=False, path=path)
    found = budget.read(path)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("calls", "told", "code"),
    [
        (1_000, None, 0),
        (1_019, None, 0),
        (1_021, "over budget: claim, alone: 1021 calls, budget 1000 (+2.1%); it consists of", 1),
        (981, None, 0),
        (979, "below its budget: claim, alone: 979 calls, budget 1000 (-2.1%)", 0),
    ],
)
def test_a_figure_may_differ_by_two_percent(
    tmp_path: Path, calls: float, told: str | None, code: int
) -> None:
    """A higher one is refused, with what it consists of; a lower one asks to lower the budget."""
    budgets = filled(tmp_path / "b.toml", both_ways(figure(1_000)))
    lines, found = judgement([figure(calls)], budgets)
    assert found == code
    assert lines[:1] == ([] if told is None else [told])
    assert ("a calls" in " ".join(lines)) == (code == 1)


def test_what_was_not_done_before_is_refused(tmp_path: Path) -> None:
    """A budget of nothing is exceeded by anything; so is a missing one."""
    budgets = filled(tmp_path / "b.toml", both_ways(figure(1_000, statements=0.0)))
    lines, code = judgement([figure(1_000, statements=0.01)], budgets)
    assert (code, lines[0]) == (
        1,
        "over budget: claim, alone: 0.01 statements, budget 0; it consists of",
    )
    assert judgement([figure(1_000)], {})[1] == 1


def test_budgets_only_fall(tmp_path: Path) -> None:
    """A budget is lowered, and raised only when that is asked for; other versions keep theirs."""
    path = tmp_path / "b.toml"
    filled(path, both_ways(figure(1_000, statements=4.0)))
    both = both_ways(figure(900, statements=5.0))
    budget.write(both, raised=False, path=path)
    found = budget.read(path)
    assert found is not None
    assert (found["claim"]["alone"][CALL], found["claim"]["alone"][STATEMENT]) == (900, 4.0)
    budget.write(both, raised=True, path=path)
    raised = budget.read(path)
    assert raised is not None
    assert raised["claim"]["alone"][STATEMENT] == 5.0
    budget.write(both, raised=False, path=path, version="9.9")
    assert budget.read(path) == raised
    assert budget.read(path, "9.9") == raised
    assert budget.read(path, "9.10") is None


def test_a_table_shows_all_figures() -> None:
    """Each figure is a line with a column for each kind."""
    head, line = table([figure(1_000)])
    assert head.split() == ["one", "operation", CALL, RESUME, HOP, STATEMENT]
    assert line.split() == ["claim", "alone", "1000", "10", "0", "4"]
