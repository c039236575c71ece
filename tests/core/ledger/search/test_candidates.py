"""An example for each rule of the candidate search."""

import pytest

from moorage.core.ledger.model import Inventory
from moorage.core.ledger.requests import TraitFilter
from tests.core.ledger.search.builder import SHARING, Builder, group


@pytest.fixture
def catalog() -> Builder:
    """Return an empty catalog."""
    return Builder()


def test_unsuffixed_group_spreads_over_the_tree(catalog: Builder) -> None:
    """Each class comes from one provider of the tree; every combination is a candidate."""
    catalog.add("host", VCPU=8)
    catalog.add("disk1", "host", DISK_GB=10)
    catalog.add("disk2", "host", DISK_GB=10)
    catalog.add("other", DISK_GB=10)
    assert catalog.candidate_lines(group(VCPU=2, DISK_GB=5)) == {
        "DISK_GB@disk1=5 VCPU@host=2",
        "DISK_GB@disk2=5 VCPU@host=2",
    }


def test_class_is_never_split(catalog: Builder) -> None:
    """An amount is not split between two providers."""
    catalog.add("host")
    catalog.add("disk1", "host", DISK_GB=10)
    catalog.add("disk2", "host", DISK_GB=10)
    assert catalog.candidate_lines(group(DISK_GB=11)) == set()


@pytest.mark.parametrize(
    ("inventory", "amount", "fits"),
    [
        (Inventory(10, used=6), 4, True),
        (Inventory(10, used=6), 5, False),
        (Inventory(10, reserved=3), 8, False),
        (Inventory(10, allocation_ratio=1.5), 15, True),
        (Inventory(10, allocation_ratio=1.5), 16, False),
        (Inventory(1, allocation_ratio=3.4e38, used=2_000_000_000), 2_147_483_647, True),
        (Inventory(10, min_unit=3), 2, False),
        (Inventory(10, max_unit=3), 4, False),
        (Inventory(10, step_size=3), 6, True),
        (Inventory(10, step_size=3), 4, False),
        (Inventory(4, used=9), 1, False),
    ],
)
def test_capacity(catalog: Builder, inventory: Inventory, amount: int, fits: bool) -> None:
    """Used and reserved amounts, allocation ratios and unit sizes count."""
    catalog.add("host", VCPU=inventory)
    assert catalog.candidate_lines(group(VCPU=amount)) == (
        {f"VCPU@host={amount}"} if fits else set()
    )


def test_suffixed_group_is_one_provider(catalog: Builder) -> None:
    """One provider serves all of a suffixed group and has all required traits."""
    catalog.add("host", traits="FAST", VCPU=8)
    catalog.add("node1", "host", VCPU=8, DISK_GB=8)
    catalog.add("node2", "host", traits="FAST", VCPU=8, DISK_GB=8)
    assert catalog.candidate_lines(group("_A", VCPU=1, DISK_GB=1)) == {
        f"DISK_GB@{node}=1 VCPU@{node}=1 _A:{node}" for node in ("node1", "node2")
    }
    assert catalog.candidate_lines(group("_A", "FAST", VCPU=1, DISK_GB=1)) == {
        "DISK_GB@node2=1 VCPU@node2=1 _A:node2"
    }


def test_required_traits_of_the_unsuffixed_group_are_collective(catalog: Builder) -> None:
    """The chosen providers together must have them; other providers do not count."""
    catalog.add("host", traits="FAST", VCPU=8)
    catalog.add("disk1", "host", traits="SSD", DISK_GB=10)
    catalog.add("disk2", "host", DISK_GB=10)
    catalog.add("bystander", "host", traits="IDLE")
    assert catalog.candidate_lines(group("", "FAST SSD", VCPU=1, DISK_GB=1)) == {
        "DISK_GB@disk1=1 VCPU@host=1"
    }
    assert catalog.candidate_lines(group("", "FAST in:SSD,NVME", VCPU=1, DISK_GB=1)) == {
        "DISK_GB@disk1=1 VCPU@host=1"
    }
    assert catalog.candidate_lines(group("", "IDLE", VCPU=1, DISK_GB=1)) == set()


def test_forbidden_traits_bind_every_chosen_provider(catalog: Builder) -> None:
    """Forbidden traits apply to chosen providers only."""
    catalog.add("host", traits="OLD", VCPU=8)
    catalog.add("disk1", "host", traits="HDD", DISK_GB=10)
    catalog.add("disk2", "host", DISK_GB=10)
    assert catalog.candidate_lines(group("", "!HDD", VCPU=1, DISK_GB=1)) == {
        "DISK_GB@disk2=1 VCPU@host=1"
    }
    assert catalog.candidate_lines(group("", "!OLD", VCPU=1, DISK_GB=1)) == set()
    assert catalog.candidate_lines(group("", "!OLD", DISK_GB=1)) == {
        "DISK_GB@disk1=1",
        "DISK_GB@disk2=1",
    }


def test_sharing_provider_serves_trees_of_its_aggregates(catalog: Builder) -> None:
    """A sharing provider serves every tree with some provider in one of its aggregates."""
    catalog.add("host1", VCPU=8)
    catalog.add("nic1", "host1", aggregates="rack")
    catalog.add("host2", VCPU=8, aggregates="elsewhere")
    catalog.add("share", traits=SHARING, aggregates="rack", DISK_GB=100)
    catalog.add("private", aggregates="rack elsewhere", DISK_GB=100)
    assert catalog.candidate_lines(group(VCPU=1, DISK_GB=1)) == {"DISK_GB@share=1 VCPU@host1=1"}
    assert catalog.candidate_lines(group(VCPU=1), group("_D", DISK_GB=1)) == {
        "DISK_GB@share=1 VCPU@host1=1 _D:share"
    }


def test_same_result_by_several_anchors_is_one_candidate(catalog: Builder) -> None:
    """A candidate of a sharing provider alone occurs once, however many trees it serves."""
    catalog.add("host1", aggregates="rack", VCPU=8)
    catalog.add("host2", aggregates="rack", VCPU=8)
    catalog.add("share", traits=SHARING, aggregates="rack", DISK_GB=100)
    answer = catalog.search(group(DISK_GB=1))
    assert [c.allocations for c in answer.candidates] == [{"share": {"DISK_GB": 1}}]
    assert [record.provider.uuid for record in answer.summaries] == ["share"]


def test_equal_allocations_with_other_mappings_are_different(catalog: Builder) -> None:
    """Candidates are equal only if their mappings are, too."""
    catalog.add("host", VCPU=8)
    catalog.add("node", "host", VCPU=8)
    assert catalog.candidate_lines(
        group("_A", VCPU=1), group("_B", VCPU=1), group_policy="isolate"
    ) == {
        "VCPU@host=1 VCPU@node=1 _A:host _B:node",
        "VCPU@host=1 VCPU@node=1 _A:node _B:host",
    }


def test_member_of_of_the_unsuffixed_group(catalog: Builder) -> None:
    """A provider or its root must be in the aggregate; a sharing provider must be itself."""
    catalog.add("host1", aggregates="az1 rack", VCPU=8)
    catalog.add("node1", "host1", DISK_GB=8)
    catalog.add("host2", aggregates="rack", VCPU=8)
    catalog.add("node2", "host2", aggregates="az1", DISK_GB=8)
    catalog.add("share1", traits=SHARING, aggregates="rack", DISK_GB=100)
    catalog.add("share2", traits=SHARING, aggregates="rack az1", DISK_GB=100)
    assert catalog.candidate_lines(group("", member_of="az1", VCPU=1, DISK_GB=1)) == {
        "DISK_GB@node1=1 VCPU@host1=1",
        "DISK_GB@share2=1 VCPU@host1=1",
    }
    assert catalog.candidate_lines(group("", member_of="in:az1,az2", DISK_GB=1)) == {
        "DISK_GB@node1=1",
        "DISK_GB@node2=1",
        "DISK_GB@share2=1",
    }
    assert catalog.candidate_lines(group("", member_of="unknown", VCPU=1)) == set()


def test_forbidden_aggregates_of_the_unsuffixed_group(catalog: Builder) -> None:
    """Neither a chosen provider nor the root of the tree may be in a forbidden aggregate."""
    catalog.add("host1", aggregates="bad rack", VCPU=8)
    catalog.add("node1", "host1", DISK_GB=8)
    catalog.add("host2", aggregates="rack", VCPU=8)
    catalog.add("node2", "host2", aggregates="bad", DISK_GB=8)
    catalog.add("share", traits=SHARING, aggregates="rack", DISK_GB=100)
    assert catalog.candidate_lines(group("", member_of="!bad", VCPU=1, DISK_GB=1)) == {
        "DISK_GB@share=1 VCPU@host2=1"
    }


def test_aggregates_of_a_suffixed_group(catalog: Builder) -> None:
    """The provider itself must be in the aggregates, and in no forbidden one."""
    catalog.add("host1", aggregates="az1", VCPU=8)
    catalog.add("node1", "host1", VCPU=8)
    catalog.add("node2", "host1", aggregates="az1 bad", VCPU=8)
    assert catalog.candidate_lines(group("_A", member_of="az1", VCPU=1)) == {
        "VCPU@host1=1 _A:host1",
        "VCPU@node2=1 _A:node2",
    }
    assert catalog.candidate_lines(group("_A", member_of="!bad", VCPU=1)) == {
        "VCPU@host1=1 _A:host1",
        "VCPU@node1=1 _A:node1",
    }


def test_in_tree(catalog: Builder) -> None:
    """Only providers of that tree serve, no sharing providers of other trees."""
    catalog.add("host1", aggregates="rack", VCPU=8)
    catalog.add("disk1", "host1", DISK_GB=8)
    catalog.add("host2", aggregates="rack", VCPU=8)
    catalog.add("share", traits=SHARING, aggregates="rack", DISK_GB=100)
    assert catalog.candidate_lines(group("", in_tree="disk1", VCPU=1, DISK_GB=1)) == {
        "DISK_GB@disk1=1 VCPU@host1=1"
    }
    assert catalog.candidate_lines(group("", in_tree="host2", VCPU=1, DISK_GB=1)) == set()
    assert catalog.candidate_lines(group(VCPU=1), group("_D", in_tree="share", DISK_GB=1)) == {
        "DISK_GB@share=1 VCPU@host1=1 _D:share",
        "DISK_GB@share=1 VCPU@host2=1 _D:share",
    }
    assert catalog.candidate_lines(group("", in_tree="nobody", VCPU=1)) == set()


def test_groups_share_one_anchor(catalog: Builder) -> None:
    """Two trees are not combined."""
    catalog.add("host1", VCPU=8)
    catalog.add("host2", DISK_GB=8)
    assert catalog.candidate_lines(group("_A", VCPU=1), group("_B", DISK_GB=1)) == set()


def test_root_traits_are_those_of_the_anchor(catalog: Builder) -> None:
    """The root itself must have all required and no forbidden traits."""
    catalog.add("host1", traits="GOOD")
    catalog.add("node1", "host1", VCPU=8)
    catalog.add("host2", traits="GOOD BAD", VCPU=8)
    catalog.add("host3", VCPU=8)
    catalog.add("node3", "host3", traits="GOOD", VCPU=8)
    wanted = TraitFilter((frozenset({"GOOD"}),), frozenset({"BAD"}))
    assert catalog.candidate_lines(group(VCPU=1), root_traits=wanted) == {"VCPU@node1=1"}


def test_amounts_on_one_provider_add_up(catalog: Builder) -> None:
    """The amounts of all groups on one provider must fit capacity and max_unit together."""
    catalog.add("host1", VCPU=Inventory(8, used=5))
    catalog.add("host2", VCPU=Inventory(8, max_unit=3))
    catalog.add("host3", VCPU=Inventory(8, min_unit=2, step_size=2))
    catalog.add("host4", VCPU=Inventory(4))
    asked = catalog.candidate_lines(group(VCPU=2), group("_A", VCPU=2))
    assert asked == {"VCPU@host3=4 _A:host3", "VCPU@host4=4 _A:host4"}


def test_isolate_keeps_suffixed_groups_apart(catalog: Builder) -> None:
    """Suffixed groups, even those without resources, are on different providers."""
    catalog.add("host", VCPU=8)
    catalog.add("node", "host", traits="NODE", VCPU=8)
    both = catalog.candidate_lines(group(VCPU=1), group("_A", VCPU=1), group("_B", VCPU=1))
    assert len(both) == 8
    apart = catalog.candidate_lines(
        group(VCPU=1), group("_A", VCPU=1), group("_B", VCPU=1), group_policy="isolate"
    )
    assert apart == {
        "VCPU@host=2 VCPU@node=1 _A:host _B:node",
        "VCPU@host=2 VCPU@node=1 _A:node _B:host",
        "VCPU@host=1 VCPU@node=2 _A:host _B:node",
        "VCPU@host=1 VCPU@node=2 _A:node _B:host",
    }
    named = catalog.candidate_lines(
        group("_A", VCPU=1),
        group("_N", "NODE"),
        group_policy="isolate",
        same_subtree=(frozenset({"_A", "_N"}),),
    )
    assert named == {"VCPU@host=1 _A:host _N:node"}


def test_same_subtree(catalog: Builder) -> None:
    """One provider of the named groups is an ancestor of (or equal to) all others."""
    catalog.add("host")
    for numa in ("numa1", "numa2"):
        catalog.add(numa, "host", traits="NUMA")
        catalog.add(f"{numa}-cpu", numa, VCPU=4)
        catalog.add(f"{numa}-nic", numa, NIC=4)
    groups = group("_C", VCPU=1), group("_N", NIC=1), group("_TOP", "NUMA")
    assert len(catalog.candidate_lines(*groups)) == 8
    assert catalog.candidate_lines(*groups[:2], same_subtree=(frozenset({"_C", "_N"}),)) == set()
    assert catalog.candidate_lines(*groups, same_subtree=(frozenset({"_C", "_N", "_TOP"}),)) == {
        f"NIC@{numa}-nic=1 VCPU@{numa}-cpu=1 _C:{numa}-cpu _N:{numa}-nic _TOP:{numa}"
        for numa in ("numa1", "numa2")
    }


def test_resourceless_group_matches_by_forbidden_traits_and_tree(catalog: Builder) -> None:
    """A group without resources may have any condition, not only required traits."""
    catalog.add("host", traits="ROOT", VCPU=4)
    catalog.add("node", "host", traits="NODE")
    for named in (group("_N", "!ROOT"), group("_N", in_tree="node")):
        found = catalog.candidate_lines(
            group("_C", VCPU=1), named, same_subtree=(frozenset({"_N", "_C"}),)
        )
        assert "VCPU@host=1 _C:host _N:node" in found


def test_candidates_without_nesting(catalog: Builder) -> None:
    """Without `nested`, candidates with two providers of one tree are omitted."""
    catalog.add("host", aggregates="rack", VCPU=8)
    catalog.add("disk", "host", DISK_GB=10)
    catalog.add("share", traits=SHARING, aggregates="rack", DISK_GB=10)
    catalog.add("idle", "share")
    answer = catalog.search(group(VCPU=1, DISK_GB=1), nested=False)
    assert [set(c.allocations) for c in answer.candidates] == [{"host", "share"}]
    assert {r.provider.uuid for r in answer.summaries} == {"host", "share"}


def test_summaries_show_whole_trees(catalog: Builder) -> None:
    """Summaries contain all providers of the trees of the candidates, and no others."""
    catalog.add("host", VCPU=8)
    catalog.add("empty", "host")
    catalog.add("other", DISK_GB=8)
    shown = catalog.search(group(VCPU=1)).summaries
    assert {record.provider.uuid for record in shown} == {"host", "empty"}
    assert catalog.search(group(VCPU=9)).summaries == []
