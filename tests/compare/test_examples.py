"""Each deliberate difference is still there, and its predicate knows it."""

import asyncio

import pytest

from tests.compare.generate.examples import EXAMPLES, VARIANTS
from tests.compare.generate.requests import Ask, plain
from tests.compare.judge.defects import LEFT_BEHIND
from tests.compare.judge.deliberate import DELIBERATE
from tests.compare.playing import Player
from tests.compare.sides import Sides

Addresses = tuple[str, dict[str, str]]


async def played(addresses: Addresses, asks: list[Ask]) -> Player:
    """Send requests to both sides."""
    async with Sides.open(*addresses) as both:
        player = Player(both)
        await player.repeat(asks, look=False)
        return player


@pytest.mark.parametrize(("name", "asks"), [*EXAMPLES.items(), *VARIANTS])
def test_is_met_by_the_last_request(name: str, asks: list[Ask], addresses: Addresses) -> None:
    """A difference that is gone must go from the list. What leads to it is answered alike: a
    predicate that met that as well would be too wide.
    """
    player = asyncio.run(played(addresses, asks))
    assert player.outcome.findings == []
    assert player.outcome.tolerated[name] > 0
    *before, _ = player.exchanges
    assert [found for each in before for found in each.differences()] == []


def test_any_unknown_trait_of_several_may_be_named(addresses: Addresses) -> None:
    """The original's choice differs between its processes: of 40 it names some other than we do."""
    lists = [f"required=in:UNKNOWN_{n}_A,UNKNOWN_{n}_B" for n in range(40)]
    player = asyncio.run(
        played(addresses, [plain("GET", f"/resource_providers?{one}", 39) for one in lists])
    )
    assert player.outcome.findings == []
    assert player.outcome.tolerated["Order of sets"] > 0


def test_each_has_an_example() -> None:
    """A predicate without an example might apply to nothing, or to too much."""
    assert set(EXAMPLES) == {LEFT_BEHIND, *(one.name for one in DELIBERATE)}
