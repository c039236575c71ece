"""Each deliberate difference still exists, and its predicate recognizes it."""

import asyncio

import pytest

from tests.compare.generate.examples import EXAMPLES, VARIANTS
from tests.compare.generate.requests import Ask, plain
from tests.compare.judge.defects import LEFT_BEHIND
from tests.compare.judge.deliberate import DELIBERATE
from tests.compare.playing import Player
from tests.compare.sides import Sides

Addresses = tuple[str, dict[str, str]]


async def play(addresses: Addresses, asks: list[Ask]) -> Player:
    """Send requests to both sides."""
    async with Sides.open(*addresses) as both:
        player = Player(both)
        await player.repeat(asks, look=False)
        return player


@pytest.mark.parametrize(("name", "asks"), [*EXAMPLES.items(), *VARIANTS])
def test_the_last_request_shows_the_difference(
    name: str, asks: list[Ask], addresses: Addresses
) -> None:
    """The earlier requests must show none, or the predicate would be too wide.

    A difference that no longer exists must be removed from the list.
    """
    player = asyncio.run(play(addresses, asks))
    assert player.outcome.findings == []
    assert player.outcome.tolerated[name] > 0
    *before, _ = player.exchanges
    assert [found for each in before for found in each.differences()] == []


def test_any_unknown_trait_of_several_may_be_named(addresses: Addresses) -> None:
    """The original's choice varies by process: of 40 it names some that Moorage does not."""
    lists = [f"required=in:UNKNOWN_{n}_A,UNKNOWN_{n}_B" for n in range(40)]
    player = asyncio.run(
        play(addresses, [plain("GET", f"/resource_providers?{one}", 39) for one in lists])
    )
    assert player.outcome.findings == []
    assert player.outcome.tolerated["Order of sets"] > 0


def test_each_difference_has_an_example() -> None:
    """A predicate without an example might apply to nothing, or to too much."""
    assert set(EXAMPLES) == {LEFT_BEHIND, *(one.name for one in DELIBERATE)}
