"""Keys and changes of a batch, and the names of providers."""

from moorage.core.ledger.facts import Changes, Keys
from moorage.core.ledger.model import CustomName, Inventory
from tests.core.ledger.build import C1, NOW, P1, P2, add_provider, facts


def test_keys_of_a_batch_are_their_union() -> None:
    """An update merges keys, and the length counts each key once."""
    keys = Keys(providers={P1}, names={"a"})
    keys.update(Keys(providers={P1, P2}, consumers={C1}, traits={"CUSTOM_T"}))
    assert keys == Keys(providers={P1, P2}, names={"a"}, consumers={C1}, traits={"CUSTOM_T"})
    assert len(keys) == 5
    assert len(Keys()) == 0


def test_the_last_image_of_a_batch_counts() -> None:
    """A later image replaces the earlier one; empty changes are falsy."""
    first = Changes(
        inventories={(P1, "VCPU"): Inventory(1)},
        classes={"CUSTOM_A": CustomName("CUSTOM_A", NOW, NOW)},
    )
    first.update(Changes(inventories={(P1, "VCPU"): None}))
    assert first.inventories == {(P1, "VCPU"): None}
    assert first
    assert not Changes()


def test_a_name_follows_its_provider() -> None:
    """`names` stays right when two providers swap names in three steps."""
    known = facts()
    one = add_provider(known, P1, name="one")
    two = add_provider(known, P2, name="two")
    for uuid, made in ((P1, one), (P2, two)):
        assert known.names[made.name] == uuid
    add_provider(known, P1, name="between")
    add_provider(known, P2, name="one")
    add_provider(known, P1, name="two")
    assert known.names == {"one": P2, "two": P1}
