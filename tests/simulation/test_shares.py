"""`make test` and the rest of CI together play every seed once."""

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.support import seeds
from tests.support.seeds import LANES, SHARES, portion, take_turn


def test_fuzzers_send_an_eighth(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their requests are drawn again for the rest."""
    for lane, sent in (("share:0", 10), ("rest:0", 80), ("all:0", 80)):
        monkeypatch.setenv(LANES, lane)
        assert portion(80) == sent


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


FILES = (
    "tests/core/ledger/search/test_against_naive.py",
    "tests/simulation/admission/test_slots.py",
)
"""One has a parameter `seed`, the other `seeds`."""


@cache
def collected(lanes: str) -> set[str]:
    """Return the tests of these files that a lane runs."""
    words = ["-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *FILES]
    done = subprocess.run(
        [sys.executable, *words],
        cwd=Path(__file__).parents[2],
        env={**os.environ, LANES: lanes},
        capture_output=True,
        text=True,
        check=True,
    )
    return {line for line in done.stdout.splitlines() if "::" in line}


@pytest.mark.parametrize("turn", range(SHARES))
def test_every_seed_is_played_once(turn: int) -> None:
    """Whatever the turn, the share and the rest are all; tests without seeds are in the share."""
    share, rest, both = map(collected, (f"share:{turn}", f"rest:{turn}", "all"))
    assert share | rest == both
    assert not share & rest
    assert len(rest) > len(share)
    assert all("[" in one for one in rest)
    for file in FILES:
        assert any(one.startswith(file) for one in share)
        assert any(one.startswith(file) for one in rest)
