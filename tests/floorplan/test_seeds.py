"""Which seeds each lane plays: the shares make up all of them, and CI plays two."""

import pytest

from tests.support import seeds

RANDOMISED = """
import pytest
def test_plain(): pass
@pytest.mark.thorough
def test_long(): pass
@pytest.mark.parametrize("seed", range(10))
def test_seeds(seed): pass
@pytest.mark.parametrize("seeds", [[0, 1], [2, 3]])
def test_few(seeds): pass
"""


@pytest.fixture(scope="module")
def items(tmp_path_factory: pytest.TempPathFactory) -> list[pytest.Item]:
    """Return collected tests: one without seeds, one for CI only, and two with seeds."""
    file = tmp_path_factory.mktemp("randomised") / "test_randomised.py"
    file.write_text(RANDOMISED)

    class Collected:
        items: list[pytest.Item]

        def pytest_collection_finish(self, session: pytest.Session) -> None:
            self.items = session.items

    collected = Collected()
    words = ["--collect-only", "-q", "-c", "/dev/null", "-p", "no:cacheprovider"]
    assert pytest.main([*words, "-W", "ignore", str(file)], plugins=[collected]) == 0
    return collected.items


def played(items: list[pytest.Item], monkeypatch: pytest.MonkeyPatch, lane: str) -> set[str]:
    """Return the names of what a lane plays."""
    monkeypatch.setenv(seeds.LANES, lane)
    return {item.name for item in seeds.leave_out(items)[0]}


@pytest.mark.parametrize("turn", range(seeds.SHARES))
def test_a_share_and_the_rest_are_all(
    items: list[pytest.Item], monkeypatch: pytest.MonkeyPatch, turn: int
) -> None:
    """Nothing is played twice, and CI plays a second share and what only CI plays."""
    share, second, rest = (
        played(items, monkeypatch, f"{lane}:{turn}") for lane in ("share", "second", "rest")
    )
    everything = {item.name for item in items}
    assert share | rest == everything
    assert not share & rest
    assert second < rest
    assert "test_plain" in share
    assert "test_long" in second
    assert len(share) < len(everything) / 2, "the control: a share is not everything"


@pytest.mark.parametrize("lane", ["share", "second"])
def test_every_seed_has_its_turn(
    items: list[pytest.Item], monkeypatch: pytest.MonkeyPatch, lane: str
) -> None:
    """After as many turns as there are shares, a lane has played all seeds."""
    turns = [played(items, monkeypatch, f"{lane}:{turn}") for turn in range(seeds.SHARES)]
    randomised = {item.name for item in items if "[" in item.name}
    assert randomised <= set().union(*turns)


def test_an_unknown_lane_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names those that there are."""
    monkeypatch.setenv(seeds.LANES, "some:0")
    with pytest.raises(pytest.UsageError, match="share, second, rest or all"):
        seeds.lane()
