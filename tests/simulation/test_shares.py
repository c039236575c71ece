"""`make test` and `make thorough` together play every seed once, and CI half of them."""

import pytest

from tests.support import seeds
from tests.support.seeds import LANES, SHARES, portion, take_turn

RANDOMISED = """
import pytest
def test_plain(): pass
@pytest.mark.thorough
def test_long(): pass
@pytest.mark.thorough
def test_longer(): pass
@pytest.mark.played_in_part
def test_fuzzer(): pass
@pytest.mark.parametrize("seed", range(10))
def test_many(seed): pass
@pytest.mark.parametrize("seeds", [[0, 1], [2, 3]])
def test_few(seeds): pass
"""


def test_fuzzers_send_an_eighth(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their requests are drawn again for the rest."""
    for lane, sent in (("share:0", 10), ("second:0", 80), ("rest:0", 80), ("all:0", 80)):
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


@pytest.mark.parametrize("lane", ["", "shares", "share:4", "second:4", "rest:x", "all:-1"])
def test_other_words_are_refused(monkeypatch: pytest.MonkeyPatch, lane: str) -> None:
    """A misspelt lane would leave out tests."""
    monkeypatch.setenv(LANES, lane)
    with pytest.raises(pytest.UsageError, match="must be share, second, rest or all"):
        take_turn()


class Collected:
    """A plugin of pytest that keeps what was collected."""

    items: list[pytest.Item]

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Called by pytest."""
        self.items = session.items


@pytest.fixture(scope="module")
def items(tmp_path_factory: pytest.TempPathFactory) -> list[pytest.Item]:
    """Return tests as pytest collects them: without seeds, and with many and few of them."""
    file = tmp_path_factory.mktemp("randomised") / "test_randomised.py"
    file.write_text(RANDOMISED)
    words = ["--collect-only", "-q", "-c", "/dev/null", "-p", "no:cacheprovider", "-W", "ignore"]
    collected = Collected()
    assert pytest.main([*words, str(file)], plugins=[collected]) == 0
    return collected.items


def played(items: list[pytest.Item], monkeypatch: pytest.MonkeyPatch, lane: str) -> set[str]:
    """Return the names of the tests that a lane plays."""
    monkeypatch.setenv(LANES, lane)
    return {item.name for item in seeds.leave_out(items)[0]}


@pytest.mark.parametrize("turn", range(SHARES))
def test_every_seed_is_played_once(
    items: list[pytest.Item], monkeypatch: pytest.MonkeyPatch, turn: int
) -> None:
    """Whatever the turn, the share and the rest are all; tests without seeds are in the share."""
    share, second, rest, both = (
        played(items, monkeypatch, f"{lane}:{turn}") for lane in ("share", "second", "rest", "all")
    )
    assert share | rest == both == {item.name for item in items}
    assert share & rest == {"test_fuzzer"}
    assert "test_plain" in share
    assert "test_fuzzer" in second
    assert len({"test_long", "test_longer"} & second) == 1
    assert second < rest


@pytest.mark.parametrize("lane", ["share", "second"])
def test_every_seed_has_its_turn(
    items: list[pytest.Item], monkeypatch: pytest.MonkeyPatch, lane: str
) -> None:
    """After as many turns as there are shares, a lane has played all seeds."""
    turns = [played(items, monkeypatch, f"{lane}:{turn}") for turn in range(SHARES)]
    left_out = {"test_longer", "test_long"} if lane == "share" else {"test_plain"}
    assert set().union(*turns) == {item.name for item in items} - left_out
    seeded = {item.name for item in items if "[" in item.name}
    assert all(not seeded <= turn for turn in turns), "the control: one turn plays some of them"
