"""`make test` and the rest of CI together play every seed once."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import seeds
from tests.support.seeds import LANES, SHARES, played, portion, take_turn


@pytest.mark.parametrize("turn", range(SHARES))
def test_nothing_is_left_out(monkeypatch: pytest.MonkeyPatch, turn: int) -> None:
    """Whatever the turn, the share and the rest are all seeds; requests are drawn again."""
    chosen: list[int] = []
    for lane in ("share", "rest"):
        monkeypatch.setenv(LANES, f"{lane}:{turn}")
        chosen += played(50)
        assert portion(80) == {"share": 10, "rest": 80}[lane]
    assert sorted(chosen) == list(range(50))
    monkeypatch.setenv(LANES, f"all:{turn}")
    assert (played(50), portion(50)) == (list(range(50)), 50)


def test_the_turn_is_the_same_in_all_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first process chooses; a commit in the middle of a run changes nothing."""
    monkeypatch.delenv(LANES)
    take_turn()
    first = seeds.lane()
    assert first[0] in ("share", "all")
    monkeypatch.setenv(LANES, f"share:{(first[1] + 1) % SHARES}")
    take_turn()
    assert seeds.lane()[1] != first[1]


@pytest.mark.parametrize("lane", ["", "shares", "share:4", "rest:x", "all:-1"])
def test_other_words_are_refused(monkeypatch: pytest.MonkeyPatch, lane: str) -> None:
    """A misspelt lane would leave out tests."""
    monkeypatch.setenv(LANES, lane)
    with pytest.raises(pytest.UsageError, match="must be share, rest or all"):
        take_turn()


NAIVE = "tests/core/ledger/search/test_against_naive.py"


def collected(lanes: str) -> set[str]:
    """Return the tests of a file with seeds that a lane runs."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", NAIVE],
        cwd=Path(__file__).parents[2],
        env={**os.environ, LANES: lanes},
        capture_output=True,
        text=True,
        check=True,
    )
    return {line for line in done.stdout.splitlines() if "::" in line}


def test_every_seed_of_a_file_is_played_once() -> None:
    """Without a word in the file; tests without seeds are only in the share."""
    share, rest, both = map(collected, ("share:3", "rest:3", "all"))
    assert share | rest == both
    assert not share & rest
    assert len(rest) > len(share)
    assert all("[" in one for one in rest)
