"""In fleets of several kinds of providers, explanations name the condition that matters."""

from collections.abc import Callable
from random import Random

import pytest
from msgspec.structs import replace

from moorage.core.ledger.model import Inventory
from moorage.core.ledger.requests import AggregateFilter, CandidateQuery, Group, TraitFilter
from moorage.core.ledger.search.catalog.catalog import Catalog
from moorage.core.ledger.search.conditions import conditions
from moorage.core.ledger.search.explain import lacking
from moorage.core.ledger.search.groups import GroupPart, terms
from tests.core.ledger.search import world
from tests.core.ledger.search.builder import SHARING, Builder, group
from tests.core.ledger.search.combine.machines import KINDS, Machines, asked_of, demanding
from tests.core.ledger.search.whole import explain, to_end

DISABLED = "COMPUTE_STATUS_DISABLED"


def compute(builder: Builder) -> None:
    """Add two hosts with cells: VCPU in `cell*`, in aggregates az1 and az2, one disabled."""
    for number, (zone, traits) in enumerate((("az1", DISABLED), ("az2", "")), 1):
        builder.add(f"host{number}", aggregates=zone, traits=traits, MEMORY_MB=1024)
        builder.add(
            f"cell{number}",
            f"host{number}",
            traits="FAST" if number == 1 else "SLOW",
            aggregates=zone,
            VCPU=Inventory(8, reserved=2, used=4, max_unit=4, min_unit=2, step_size=2),
        )


def bare_metal(builder: Builder) -> None:
    """Add nodes that offer one class of their own."""
    for number in range(3):
        builder.add(f"node{number}", traits="FAST", aggregates="az1", CUSTOM_BM=1)


def storage(builder: Builder) -> None:
    """Add a sharing provider for both zones."""
    builder.add("pool", traits=f"{SHARING} SLOW", aggregates="az1 az2", DISK_GB=100)


def cards(builder: Builder) -> None:
    """Add a host with network cards, and nothing else."""
    builder.add("rack", aggregates="az2")
    for number in range(2):
        builder.add(f"card{number}", "rack", traits="FAST", NIC=Inventory(4, used=4 * number))


OTHERS: tuple[Callable[[Builder], None], ...] = (bare_metal, storage, cards)

CASES: list[tuple[str, Group, str, str]] = [
    # What is asked, what the sentence names, and what it does not name.
    ("class", group(GPU=1), "GPU: ", "VCPU"),
    ("total", group(VCPU=20), "VCPU: the 2 nearest providers do not admit 20", "not offer"),
    ("maximum", group(VCPU=6), "do not admit 6 by the unit sizes", "not offer"),
    ("minimum", group(VCPU=1), "do not admit 1 by the unit sizes", "not offer"),
    ("step", group(VCPU=3), "do not admit 3 by the unit sizes", "not offer"),
    ("room", group(VCPU=4), "VCPU: the freest of the 2 nearest providers has 2 of", "not offer"),
    ("memory", group(MEMORY_MB=2048), "has 1024 of the required 2048", "not offer"),
    ("used", group("_A", in_tree="card1", NIC=1, required="FAST", member_of="az2"), "az2", "VCPU"),
    ("trait", group("_A", "BLUE", VCPU=2), "has BLUE", "not offer"),
    ("any trait", group("_A", "in:BLUE,RED", VCPU=2), "has BLUE or RED", "not offer"),
    ("forbidden", group("_A", "!FAST !SLOW", VCPU=2), "is without FAST or SLOW", "not offer"),
    (
        "forbidden, plain",
        group(required=f"!{DISABLED}", in_tree="host1", MEMORY_MB=1),
        DISABLED,
        "not offer",
    ),
    ("one of two", group("_A", "FAST SLOW", VCPU=2), "has SLOW", "not offer"),
    ("aggregate", group(VCPU=2, member_of="az3"), "is in aggregate az3", "not offer"),
    (
        "no aggregate",
        group("_A", member_of="!az1 !az2", VCPU=2),
        "is not in aggregate az1",
        "not offer",
    ),
    ("tree", group(VCPU=2, in_tree="node1"), "is in the tree of node1", "not offer"),
    ("unknown tree", group(VCPU=2, in_tree="lost"), "is in the tree of lost", "not offer"),
    (
        "room in a zone",
        group(CUSTOM_BM=2, member_of="az1"),
        "CUSTOM_BM: the freest of the 3",
        "az1",
    ),
    (
        "together",
        group("_A", VCPU=2, DISK_GB=1),
        "no provider offers VCPU and DISK_GB together",
        "FAST",
    ),
    ("sharing", group("_A", "FAST", DISK_GB=1), "has FAST", "not offer"),
]


@pytest.mark.parametrize(("name", "asked", "named", "unnamed"), CASES, ids=[c[0] for c in CASES])
@pytest.mark.parametrize("kinds", [OTHERS, OTHERS[::-1]], ids=["before", "after"])
def test_the_condition_is_named(
    kinds: tuple[Callable[[Builder], None], ...], name: str, asked: Group, named: str, unnamed: str
) -> None:
    """Whatever other kinds there are, and whichever come first."""
    builder = Builder()
    for add in kinds[:1]:
        add(builder)
    compute(builder)
    for add in kinds[1:]:
        add(builder)
    explained = explain(builder.catalog, CandidateQuery((asked,)))
    assert not explained.found and explained.nearest is not None
    assert named in explained.nearest, name
    assert unnamed not in explained.nearest, name


def test_a_disabled_host_beside_bare_metal() -> None:
    """The only host with processors is disabled: that is the reason, not the node without them."""
    for first in ("host", "node"):
        builder = Builder()
        for name in (first, "node" if first == "host" else "host"):
            if name == "host":
                builder.add("host", traits=DISABLED, VCPU=4)
            else:
                builder.add("node", CUSTOM_BM=1)
        explained = explain(
            builder.catalog, CandidateQuery((group(required=f"!{DISABLED}", VCPU=1),))
        )
        assert explained.nearest == (
            f"the nearest provider does not meet the condition: is without {DISABLED}."
        )
        assert explained.without == ["forbidden"]
        root = CandidateQuery((group(VCPU=1),), root_traits=TraitFilter((), frozenset({DISABLED})))
        assert explain(builder.catalog, root).without == ["root_required"]


def meeting(catalog: Catalog, term: GroupPart, dropped: str) -> tuple[int, int]:
    """Return how many relevant providers meet all conditions but one, and the fewest missed."""
    tree = term.group.in_tree
    asked = conditions(term, None if tree is None else catalog.places.get(tree))
    fewest, count = len(asked) + 1, 0
    for chunk in catalog.chunks:
        for row in range(chunk.size):
            if not chunk.here[row]:
                continue
            offers = chunk.record(row).inventories
            if any(name not in offers for name in term.resources):
                continue
            missed = [
                each.words for each in asked if (rows := each.rows(chunk)) is None or not rows[row]
            ]
            fewest = min(fewest, len(missed))
            count += missed == [dropped]
    return count, fewest


def test_without_the_named_condition_there_is_progress() -> None:
    """Of the providers that offer the classes, some would do but for the named condition alone."""
    judged = several = 0
    for number in range(400):
        random = Random(f"kinds/{number}")
        machines = Machines(random)
        for kind in random.sample(KINDS, 3):
            machines.machine(kind, random.randint(1, 4))
        machines.sharing()
        machines.use(0.6)
        uuids = list(machines.records)
        one = asked_of(random, machines.records[random.choice(uuids)], "_A", 0.6)
        one = demanding(random, one, uuids, 1.0)
        if not one.resources:
            continue
        catalog = world.fleet_of(machines.records, 64)
        (term,) = terms((one,))
        tree = one.in_tree
        asked = conditions(term, None if tree is None else catalog.places.get(tree))
        explained = explain(catalog, CandidateQuery((one,)))
        nearest = explained.parts[0].nearest
        if nearest is None:
            continue
        assert nearest == to_end(lacking(catalog, asked))
        named = [each for each in asked if nearest.startswith(f"{each.name}: ") and each.name]
        named = named or [each for each in asked if f"condition: {each.words}" in nearest]
        assert named, nearest
        count, fewest = meeting(catalog, term, named[0].words)
        if "conditions are missed" in nearest:
            assert fewest > 1, nearest
            several += 1
        else:
            assert count and fewest == 1, nearest
            judged += 1
    assert judged > 40 and several > 3


def test_dropping_a_kind_of_condition_is_searched_for() -> None:
    """What `without` names was searched for, also where a single provider lacks something."""
    builder = Builder()
    compute(builder)
    for add in OTHERS:
        add(builder)
    query = CandidateQuery((group(required="!FAST", in_tree="host1", VCPU=2),))
    assert explain(builder.catalog, query).without == ["forbidden", "in_tree"]
    zone = replace(query.groups[0], aggregates=AggregateFilter((frozenset({"az2"}),)))
    assert explain(builder.catalog, CandidateQuery((zone,))).without == ["in_tree"]
