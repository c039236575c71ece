"""What a claim may choose from: the candidates there are, in the order that was asked for."""

from random import Random

import pytest

from moorage.core.ledger.model import Inventory
from moorage.core.ledger.requests import CandidateQuery, Group, Order, Preference
from moorage.core.ledger.search import candidates, preferred
from tests.core.search import world
from tests.core.search.builder import Builder

PREFERENCES: tuple[Preference, ...] = ("random", "pack", "spread")


def chosen(builder: Builder, group: Group, order: Order, wanted: int = 10) -> list[str]:
    """Return the providers of the candidates, one each, in their order."""
    answer = preferred(builder.fleet, CandidateQuery((group,)), order, wanted)
    return [name for candidate in answer.candidates for name in candidate.allocations]


@pytest.mark.parametrize("seed", range(10))
def test_preferred_are_candidates(seed: int) -> None:
    """Every one is a candidate, none comes twice, and there is one whenever there are any."""
    answered = 0
    for number in range(100):
        random = Random(f"preferred/{seed}/{number}")
        records = world.some_fleet(random, random.randint(1, 10))
        fleet = world.fleet_of(records, random.choice((1, 4, 1024)))
        query = world.some_query(random, len(records))
        order = Order(random.choice(PREFERENCES), random.randint(0, 99))
        wanted = random.randint(1, 12)
        where = f"Random('preferred/{seed}/{number}'), {order}, {wanted}: {query}"
        everything = {world.plain(each) for each in candidates(fleet, query).candidates}
        answer = preferred(fleet, query, order, wanted)
        found = [world.plain(each) for each in answer.candidates]
        assert len(set(found)) == len(found) <= wanted, where
        assert set(found) <= everything, where
        assert bool(found) == bool(everything), where
        assert preferred(fleet, query, order, wanted) == answer, where
        answered += bool(found)
    assert answered > 15


def rack() -> Builder:
    """Return three hosts of 4 units that are half full, empty, and nearly full."""
    builder = Builder()
    for name, used in (("half", 2), ("empty", 0), ("nearly", 3)):
        builder.add(name, VCPU=Inventory(4, used=used))
    return builder


def test_pack_and_spread() -> None:
    """Who packs gets the fullest first, who spreads the emptiest."""
    one = Group("", {"VCPU": 1})
    assert chosen(rack(), one, Order("pack")) == ["nearly", "half", "empty"]
    assert chosen(rack(), one, Order("spread")) == ["empty", "half", "nearly"]
    assert chosen(rack(), one, Order("pack"), 1) == ["nearly"]
    assert chosen(rack(), Group("", {"VCPU": 2}), Order("pack")) == ["half", "empty"]


def test_fullness_counts_the_whole_tree_and_the_classes_asked_for() -> None:
    """What is used elsewhere in the tree counts, what is used of other classes does not."""
    builder = Builder()
    for name, used, disk in (("a", 1, 0), ("b", 3, 0), ("c", 0, 9)):
        builder.add(name, DISK_GB=Inventory(10, used=disk))
        builder.add(f"{name}0", name, VCPU=Inventory(4, used=used))
        builder.add(f"{name}1", name, VCPU=Inventory(4, used=4))
    one = Group("", {"VCPU": 1})
    assert chosen(builder, one, Order("pack")) == ["b0", "a0", "c0"]
    assert chosen(builder, one, Order("spread")) == ["c0", "a0", "b0"]


def test_chance_depends_on_the_seed_alone() -> None:
    """The same seed gives the same order; over many seeds everybody is the first about as often."""
    one = Group("", {"VCPU": 1})
    firsts = [chosen(rack(), one, Order("random", seed))[0] for seed in range(300)]
    assert firsts == [chosen(rack(), one, Order("random", seed))[0] for seed in range(300)]
    assert all(firsts.count(name) > 70 for name in ("half", "empty", "nearly"))


def test_one_tree_does_not_fill_the_offer() -> None:
    """Of one tree only a few candidates are given, however many it has, so that others are, too."""
    builder = Builder()
    for host in "abc":
        builder.add(host)
        for number in range(8):
            builder.add(f"{host}{number}", host, VCPU=1)
    found = chosen(builder, Group("", {"VCPU": 1}), Order("pack"), 10)
    assert sorted(name[0] for name in found) == [*"aaaabbbbcc"]


def test_a_search_given_up_says_so() -> None:
    """When the steps are used up before anything was found, the answer is not exhausted."""
    builder = Builder()
    builder.add("host")
    for number in range(6):
        builder.add(f"p{number}", "host", VCPU=1, traits="X" if number else "X Y")
    groups = tuple(Group(f"_{n}", {"VCPU": 1}) for n in range(6))
    query = CandidateQuery(groups, same_subtree=(frozenset({"_0", "_1"}),))
    answer = preferred(builder.fleet, query, Order(), 5, steps_max=3)
    assert answer.candidates == [] and not answer.exhausted
