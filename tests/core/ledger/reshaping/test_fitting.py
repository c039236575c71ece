"""The search for places: exact, bounded, and the same every time."""

import random
from itertools import product

import pytest

from moorage.core.ledger.reshaping import fitting
from moorage.core.ledger.reshaping.fitting import GAVE_UP, INFEASIBLE, Item, fit
from tests.core.ledger.build import consumer_id, provider_id
from tests.support.seeds import seeds

SOURCE = (provider_id(90), "VCPU")
PLACES = [(provider_id(n), "VCPU") for n in range(1, 5)]


def items(*amounts: int, places: int = 3) -> list[Item]:
    """Return one item for each amount, which may go to the first places."""
    options = tuple(PLACES[:places])
    return [Item(consumer_id(n), SOURCE, amount, options) for n, amount in enumerate(amounts)]


def test_places_are_chosen_in_the_order_of_the_plan() -> None:
    """Equal amounts fill the first place first, by consumer."""
    found = fit(items(2, 2, 2), dict.fromkeys(PLACES[:3], 4))
    assert isinstance(found, list)
    assert [(item.consumer, key) for item, key in found] == [
        (consumer_id(0), PLACES[0]),
        (consumer_id(1), PLACES[0]),
        (consumer_id(2), PLACES[1]),
    ]


def test_a_wrong_turn_is_taken_back() -> None:
    """6 + 4 and 5 + 5 fill two places of ten, which the largest first alone does not find."""
    rooms = dict.fromkeys(PLACES[:2], 10)
    found = fit(items(6, 5, 5, 4, places=2), rooms)
    assert isinstance(found, list)
    assert fit(items(6, 6, 5, 3, places=2), rooms) is INFEASIBLE
    assert fit(items(7, 7, 7, places=2), rooms) is INFEASIBLE
    assert fit(items(11), rooms | {PLACES[2]: 10}) is INFEASIBLE


def test_nothing_to_place_fits() -> None:
    """No items need no places, also where too much is used already."""
    assert fit([], {PLACES[0]: -5}) == []


def test_an_item_without_options_is_infeasible() -> None:
    """An item that no place admits has no solution."""
    assert fit([Item(consumer_id(1), SOURCE, 1, ())], {PLACES[0]: 5}) is INFEASIBLE


def test_it_gives_up_after_its_steps() -> None:
    """With few steps it does not know; with enough it finds that nothing fits."""
    rooms = dict.fromkeys(PLACES[:2], 13)
    hard = items(6, 5, 5, 5, 5, places=2)
    assert fit(hard, rooms, steps=5) is GAVE_UP
    assert fit(hard, rooms) is INFEASIBLE


@seeds(4_000, 500)
def test_the_search_is_exact(seeds: range) -> None:
    """It finds a distribution if and only if trying all of them does."""
    found_any = found_none = 0
    for seed in seeds:
        draw = random.Random(seed)
        rooms = {key: draw.randint(-1, 9) for key in PLACES}
        wanted = [
            Item(
                consumer_id(n),
                SOURCE,
                draw.randint(1, 6),
                tuple(draw.sample(PLACES, draw.randint(1, 4))),
            )
            for n in range(draw.randint(1, 5))
        ]
        found = fit(wanted, rooms)
        assert (found is INFEASIBLE) == (not any_fits(wanted, rooms))
        if isinstance(found, list):
            found_any += 1
            assert sorted(item.consumer for item, _ in found) == [one.consumer for one in wanted]
            assert all(key in item.options for item, key in found)
            assert fits({item.consumer: (item.amount, key) for item, key in found}, rooms)
            draw.shuffle(wanted)
            assert fit(wanted, rooms) == found
        else:
            found_none += 1
    assert min(found_any, found_none) > 50


def any_fits(wanted: list[Item], rooms: dict[tuple[str, str], int]) -> bool:
    """Try everything."""
    return any(
        fits(
            {one.consumer: (one.amount, key) for one, key in zip(wanted, keys, strict=True)}, rooms
        )
        for keys in product(*(one.options for one in wanted))
    )


def fits(chosen: dict[str, tuple[int, tuple[str, str]]], rooms: dict[tuple[str, str], int]) -> bool:
    """Does every place have room for what is chosen for it?"""
    return all(
        sum(amount for amount, at in chosen.values() if at == key) <= max(room, 0)
        for key, room in rooms.items()
    )


@pytest.mark.parametrize("places", [8, 200])
def test_many_equal_consumers_take_few_steps(places: int) -> None:
    """10,000 consumers of few sizes are placed well within the bound."""
    options = tuple((provider_id(n), "VCPU") for n in range(places))
    many = [Item(consumer_id(n), SOURCE, 1 + n % 4, options) for n in range(10_000)]
    room = -(-sum(one.amount for one in many) // places) + 4
    found = fit(many, dict.fromkeys(options, room), steps=fitting.FIT_STEPS_MAX // 10)
    assert isinstance(found, list)
