"""Equal parts of a query have one kind, so that their providers are searched once."""

import pytest

from moorage.core.ledger.requests import Group
from moorage.core.ledger.search.groups import kinds, terms
from tests.core.ledger.search.builder import group


def test_equal_groups_are_of_one_kind() -> None:
    """Neither the order of conditions nor the suffix matters."""
    many = [group(f"_{n}", "A B !C", "in:X,Y", FPGA=1, VGPU=2) for n in range(3)]
    turned = group("_turned", "B A !C", "in:Y,X", VGPU=2, FPGA=1)
    assert kinds(terms((*many, group("_other", FPGA=1), turned))) == [0, 0, 0, 1, 0]


def test_each_class_of_the_unsuffixed_group_is_a_separate_kind() -> None:
    """The classes are terms of one group, but different providers have room for them."""
    whole = terms((group(VCPU=1, DISK_GB=1), group("_same", VCPU=1)))
    assert kinds(whole) == [0, 1, 2]
    assert kinds(terms((group(VCPU=1),))) == [0]


@pytest.mark.parametrize(
    "other",
    [
        group("_2", "A !B", "in:X !Y", "tree", FPGA=2),
        group("_2", "A !B", "in:X !Y", "tree", VGPU=1),
        group("_2", "C !B", "in:X !Y", "tree", FPGA=1),
        group("_2", "A", "in:X !Y", "tree", FPGA=1),
        group("_2", "A !B", "in:Z !Y", "tree", FPGA=1),
        group("_2", "A !B", "in:X", "tree", FPGA=1),
        group("_2", "A !B", "in:X !Y", "another", FPGA=1),
        group("_2", "A !B", "in:X !Y", FPGA=1),
    ],
)
def test_every_difference_makes_another_kind(other: Group) -> None:
    """Different amounts, classes, traits, aggregates or trees are different kinds."""
    first = group("_1", "A !B", "in:X !Y", "tree", FPGA=1)
    assert kinds(terms((first, other))) == [0, 1]
