"""Keys and changes of a batch, and the names of providers."""

from msgspec.structs import replace

from moorage.core.ledger.bulk import Trial
from moorage.core.ledger.facts import Changes, Keys
from moorage.core.ledger.model import CustomName, Inventory
from tests.core.ledger.build import C1, C2, NOW, P1, P2, add_consumer, add_provider, facts


def test_keys_of_a_batch_are_their_union() -> None:
    """An update merges keys, and the length counts each key once."""
    keys = Keys(providers={P1}, names={"a"})
    keys.update(Keys(providers={P1, P2}, consumers={C1}, traits={"CUSTOM_T"}, holders={P2}))
    assert keys == Keys(
        providers={P1, P2}, names={"a"}, consumers={C1}, traits={"CUSTOM_T"}, holders={P2}
    )
    assert len(keys) == 6
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


def test_holders_follow_every_change() -> None:
    """Who holds units on a provider stays complete, also when steps are taken back."""
    known = facts()
    add_provider(known, P1, VCPU=Inventory(8))
    add_provider(known, P2, VCPU=Inventory(8))
    known.holders = {P1: set(), P2: set()}
    add_consumer(known, C1, {P1: {"VCPU": 1}})
    add_consumer(known, C2, {P1: {"VCPU": 1}, P2: {"VCPU": 1}})
    assert known.holders == {P1: {C1, C2}, P2: {C2}}
    trial = Trial(known, NOW)
    trial.step(Changes(consumers={C1: None}))
    moved = replace(known.consumers[C2], allocations={P2: {"VCPU": 2}})
    trial.step(Changes(consumers={C2: moved}))
    assert known.holders == {P1: set(), P2: {C2}}
    trial.take_back()
    assert known.holders == {P1: {C1, C2}, P2: {C2}}


def test_holders_of_other_providers_are_not_kept() -> None:
    """Only what was asked for is known: an incomplete set would be wrong."""
    known = facts()
    add_provider(known, P1, VCPU=Inventory(8))
    add_consumer(known, C1, {P1: {"VCPU": 1}})
    assert known.holders == {}
