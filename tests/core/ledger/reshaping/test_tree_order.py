"""Trees are read from the top, by name; every provider has one line, whatever their parents say."""

from typing import NamedTuple

from moorage.core.ledger.reshaping.tree_order import in_tree_order

DEEP = 10_000
"""As deep as a tree may be: more than Python recurses."""


class Node(NamedTuple):
    """A provider."""

    name: str
    parent: str | None = None


def test_each_stands_below_its_parent_by_name() -> None:
    """Of equal names, the identifier decides."""
    nodes = {
        "1": Node("b"),
        "2": Node("a"),
        "3": Node("z", "2"),
        "4": Node("c", "2"),
        "6": Node("same", "3"),
        "5": Node("same", "3"),
        "7": Node("elsewhere", "unknown"),
    }
    assert [*in_tree_order(nodes)] == [
        ("2", 0),
        ("4", 1),
        ("3", 1),
        ("5", 2),
        ("6", 2),
        ("1", 0),
        ("7", 0),
    ]


def test_a_loop_is_left_out_of_nothing() -> None:
    """A plan with such a violation is shown, too, and what hangs on the loop is below it."""
    nodes = {"1": Node("b", "2"), "2": Node("a", "1"), "3": Node("c", "1"), "4": Node("d", "4")}
    assert [*in_tree_order(nodes)] == [("2", 0), ("1", 1), ("3", 2), ("4", 0)]


def test_a_tree_may_be_deep() -> None:
    """Its order is found without recursion."""
    nodes = {str(one): Node("n", str(one - 1) if one else None) for one in range(DEEP)}
    assert [*in_tree_order(nodes)][-1] == (str(DEEP - 1), DEEP - 1)
