"""How much of a randomised test is played: a share in `make test`, one more in CI, all in a soak.

`MOORAGE_SEEDS` is `share`, the default, `second`, the share after it, `rest`, all other shares, or
`all`. The share is another one for each commit; `share:2` and `rest:2` are for one of 0 to 3. It
holds for every test with a parameter `seed` or `seeds`.
`MOORAGE_SEED` plays one seed, as a failure names it. With `MOORAGE_SOAK`, new seeds follow for
`MOORAGE_SOAK_SECONDS`.
"""

import os
import random
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import monotonic

import pytest

SHARES = 4
"""`make test` plays one of this many shares."""

PLAYED = {"share": {0}, "second": {1}, "rest": {1, 2, 3}}
"""The shares of each lane, counted from the one whose turn it is."""

SOAK = bool(os.environ.get("MOORAGE_SOAK"))
SOAK_SECONDS = float(os.environ.get("MOORAGE_SOAK_SECONDS", "600"))
LANES = "MOORAGE_SEEDS"
ONE = os.environ.get("MOORAGE_SEED")
Decorator = Callable[[Callable[..., object]], Callable[..., object]]


def lane() -> tuple[str, int]:
    """Return what is played, and the number of the share. Raises pytest.UsageError."""
    asked = os.environ.get(LANES, "all:0")
    what, _, turn = asked.partition(":")
    if what not in ("share", "second", "rest", "all") or turn not in map(str, range(SHARES)):
        raise pytest.UsageError(f"{LANES} must be share, second, rest or all, not {asked!r}")
    return what, int(turn)


def take_turn() -> None:
    """Let the commit choose the share, for this process and for all that it starts."""
    asked = os.environ.get(LANES, "all" if SOAK else "share")
    if ":" not in asked:
        command = ["git", "rev-parse", "HEAD"]
        done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, check=False)
        asked = f"{asked}:{int(done.stdout or b'0', 16) % SHARES}"
    os.environ[LANES] = asked
    lane()


def is_share() -> bool:
    """Return whether only a share is played, too little to show that a fuzzer does everything."""
    return lane()[0] == "share"


def portion(count: int) -> int:
    """Return how many of `count` requests this run sends, if they are drawn again in each run."""
    return count // (2 * SHARES) if is_share() else count


def seeds(count: int, chunk: int) -> Decorator:
    """Give the test its argument `seeds`: up to `chunk` of the seeds below `count`, in turn."""
    chosen = range(0 if ONE is not None else count)
    chunks = [chosen[first : first + chunk] for first in range(0, len(chosen), chunk)]
    return pytest.mark.parametrize("seeds", chunks, ids=[f"{one[0]}-{one[-1]}" for one in chunks])


def one_seed(test: Callable[..., object]) -> Callable[..., object]:
    """Give the test its argument `seed`, the one of `MOORAGE_SEED`; skip it without."""
    return pytest.mark.parametrize("seed", [] if ONE is None else [int(ONE)])(test)


def new_seeds() -> Iterator[int]:
    """Return new seeds, for as long as a soak lasts; skip the test if this is none."""
    if not SOAK:
        pytest.skip("MOORAGE_SOAK is not set")
    end, seed = monotonic() + SOAK_SECONDS, random.randrange(10**9)
    while monotonic() < end:
        yield seed
        seed += 1


def leave_out(items: Sequence[pytest.Item]) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """Return the tests to run and those to leave out in this lane.

    Of a test with a parameter `seed` or `seeds`, a share is at least one of its values. `second`
    has every other test that is marked as thorough.
    """
    what, turn = lane()
    known: dict[tuple[object, str], list[object]] = {}
    for item in items:
        values = known.setdefault(_test_of(item), [])
        if (seed := _seed_of(item)) is not None and seed not in values:
            values.append(seed)
    thorough = [item for item in items if item.get_closest_marker("thorough") is not None]
    in_turn = {item.nodeid for item in thorough[turn % 2 :: 2]}

    def is_for(item: pytest.Item) -> bool:
        marks = {mark.name for mark in item.iter_markers()}
        if "thorough" in marks:
            return what in ("rest", "all") or (what == "second" and item.nodeid in in_turn)
        if values := known[_test_of(item)]:
            shares = min(SHARES, len(values))
            after = (values.index(_seed_of(item)) - turn) % shares
            return what == "all" or after in PLAYED[what]
        return what in ("share", "all") or "played_in_part" in marks

    kept: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for item in items:
        (kept if is_for(item) else left_out).append(item)
    return kept, left_out


def _seed_of(item: pytest.Item) -> object:
    called = getattr(item, "callspec", None)
    return None if called is None else called.params.get("seed", called.params.get("seeds"))


def _test_of(item: pytest.Item) -> tuple[object, str]:
    return item.parent, getattr(item, "originalname", item.name)
