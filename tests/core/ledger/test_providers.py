"""Providers and their trees: creation, renaming, moving and deletion."""

import pytest

from moorage.core.errors import Code
from moorage.core.ledger import providers
from moorage.core.ledger.facts import Changes
from moorage.core.ledger.model import NO_TAGS, Inventory, Provider
from tests.core.ledger.build import (
    NOW,
    P1,
    P2,
    P3,
    P4,
    THEN,
    Refused,
    add_provider,
    add_tags,
    facts,
    provider_id,
    used,
)


def test_create_makes_a_root_at_generation_zero() -> None:
    """A provider without a parent is its own root."""
    changes, made = providers.create(facts(), NOW, P1, "one", None)
    assert made == Provider(P1, "one", 0, None, P1, NOW, NOW)
    assert changes == Changes(providers={P1: made})


def test_create_takes_the_root_of_its_parent() -> None:
    """A grandchild's root is the top of the tree, not its parent."""
    known = facts()
    add_provider(known, P1)
    add_provider(known, P2, parent=P1)
    _, made = providers.create(known, NOW, P3, "three", P2)
    assert (made.parent, made.root) == (P2, P1)


def test_create_refuses_a_name_that_is_taken() -> None:
    """Names are unique; the refusal contains the name."""
    known = facts()
    add_provider(known, P1, name="one")
    with Refused(Code.DUPLICATE_PROVIDER) as refusal:
        providers.create(known, NOW, P2, "one", None)
    assert "Conflicting resource provider name: one already exists." in refusal.message


def test_create_refuses_a_uuid_that_is_taken() -> None:
    """UUIDs are unique; the refusal contains the UUID, even if the name is equal, too."""
    known = facts()
    add_provider(known, P1, name="one")
    for name in ("two", "one"):
        with Refused(Code.DUPLICATE_PROVIDER) as refusal:
            providers.create(known, NOW, P1, name, None)
        assert f"uuid: {P1} already exists." in refusal.message


def test_create_refuses_an_unknown_parent() -> None:
    """A parent must exist first."""
    with Refused(Code.PARENT_UNKNOWN) as refusal:
        providers.create(facts(), NOW, P1, "one", P2)
    assert "parent provider UUID does not exist" in refusal.message


def test_create_refuses_itself_as_parent() -> None:
    """A provider cannot be its own parent."""
    with Refused(Code.INVALID) as refusal:
        providers.create(facts(), NOW, P1, "one", P1)
    assert "parent provider UUID cannot be same as UUID" in refusal.message


def test_create_and_update_refuse_an_empty_name() -> None:
    """Every provider must have a name."""
    known = facts()
    add_provider(known, P1)
    with Refused(Code.INVALID):
        providers.create(known, NOW, P2, "", None)
    with Refused(Code.INVALID):
        providers.update(known, NOW, P1, "", False, None, True)


def test_update_renames_and_keeps_the_generation() -> None:
    """Renaming a provider does not raise its generation."""
    known = facts()
    add_provider(known, P1, generation=7)
    changes, renamed = providers.update(known, NOW, P1, "new", False, None, False)
    assert (renamed.name, renamed.generation) == ("new", 7)
    assert (renamed.created_at, renamed.updated_at) == (THEN, NOW)
    assert changes == Changes(providers={P1: renamed})


def test_update_may_keep_its_own_name() -> None:
    """A provider's own name does not count as taken; an update without a difference is empty."""
    known = facts()
    add_provider(known, P1, name="one")
    changes, same = providers.update(known, NOW, P1, "one", False, None, False)
    assert (changes, same) == (Changes(), known.providers[P1])
    changes, same = providers.update(known, NOW, P1, "one", True, None, False)
    assert (changes, same) == (Changes(), known.providers[P1])


def test_update_refuses_a_taken_name_and_an_unknown_provider() -> None:
    """Another provider's name, and an unknown provider, are refused."""
    known = facts()
    add_provider(known, P1, name="one")
    add_provider(known, P2, name="two")
    with Refused(Code.DUPLICATE_PROVIDER):
        providers.update(known, NOW, P2, "one", False, None, True)
    with Refused(Code.PROVIDER_NOT_FOUND):
        providers.update(known, NOW, P3, "three", False, None, True)


def test_a_root_may_get_a_parent_once() -> None:
    """Before 1.37 a root can get a parent, and its whole tree moves with it."""
    known = facts()
    add_provider(known, P1)
    add_provider(known, P2)
    add_provider(known, P3, parent=P2)
    changes, moved = providers.update(known, NOW, P2, "name-2", True, P1, False)
    assert (moved.parent, moved.root) == (P1, P1)
    below = changes.providers[P3]
    assert below is not None
    assert (below.parent, below.root) == (P2, P1)
    assert set(changes.providers) == {P2, P3}


@pytest.mark.parametrize(("parent", "verb"), [(P3, "re-parenting"), (None, "un-parenting")])
def test_a_parent_stays_before_1_37(parent: object, verb: str) -> None:
    """Before 1.37 a parent can neither be changed nor removed, but be sent again."""
    known = facts()
    for uuid in (P1, P3):
        add_provider(known, uuid)
    add_provider(known, P2, parent=P1)
    with Refused(Code.REPARENT_REFUSED) as refusal:
        providers.update(known, NOW, P2, "two", True, parent, False)  # type: ignore[arg-type]  # parametrize loses the type
    assert f"{verb} a provider is not currently allowed" in refusal.message
    _, same = providers.update(known, NOW, P2, "two", True, P1, False)
    assert same.parent == P1
    with Refused(Code.PARENT_UNKNOWN):
        providers.update(known, NOW, P2, "two", True, P4, False)


def test_a_subtree_may_move_since_1_37() -> None:
    """From 1.37 a subtree can become a separate tree or move to another."""
    known = facts()
    for uuid, parent in ((P1, None), (P2, P1), (P3, P2), (P4, None)):
        add_provider(known, uuid, parent=parent)
    changes, moved = providers.update(known, NOW, P2, "two", True, None, True)
    assert (moved.parent, moved.root) == (None, P2)
    assert changes.providers[P3].root == P2  # type: ignore[union-attr]  # it is there
    known.apply(changes)
    changes, moved = providers.update(known, NOW, P2, "two", True, P4, True)
    assert (moved.parent, moved.root) == (P4, P4)
    assert changes.providers[P3].root == P4  # type: ignore[union-attr]  # it is there


def test_a_move_within_the_tree_writes_one_provider() -> None:
    """No root changes, so only the moved provider is written."""
    known = facts()
    for uuid, parent in ((P1, None), (P2, P1), (P3, P1), (P4, P2)):
        add_provider(known, uuid, parent=parent)
    changes, moved = providers.update(known, NOW, P2, "two", True, P3, True)
    assert (moved.parent, moved.root) == (P3, P1)
    assert set(changes.providers) == {P2}


@pytest.mark.parametrize("parent", [P1, P2, P3])
def test_a_loop_is_refused(parent: object) -> None:
    """Neither a provider itself nor any of its descendants can become its parent."""
    known = facts()
    for uuid, above in ((P1, None), (P2, P1), (P3, P2)):
        add_provider(known, uuid, parent=above)
    with Refused(Code.TREE_LOOP) as refusal:
        providers.update(known, NOW, P1, "one", True, parent, True)  # type: ignore[arg-type]  # parametrize loses the type
    assert "creating loop in the provider tree is not allowed" in refusal.message


def test_a_move_to_an_unknown_parent_is_refused() -> None:
    """The new parent must exist."""
    known = facts()
    add_provider(known, P1)
    with Refused(Code.PARENT_UNKNOWN):
        providers.update(known, NOW, P1, "one", True, P4, True)


def test_a_move_of_too_large_a_tree_is_refused() -> None:
    """The number of providers that one request may move is bounded."""
    known = facts()
    add_provider(known, P1)
    add_provider(known, P2)
    for n in range(10, 10 + 10_000):
        add_provider(known, provider_id(n), parent=P1)
    with Refused(Code.LIMIT_EXCEEDED):
        providers.update(known, NOW, P1, "one", True, P2, True)


def test_delete_removes_inventories_and_tags_as_well() -> None:
    """Nothing of a deleted provider remains in the facts."""
    known = facts()
    add_provider(known, P1, VCPU=Inventory(8), DISK_GB=Inventory(8))
    add_tags(known, P1, {"STORAGE_DISK_SSD"})
    changes = providers.delete(known, P1)
    assert changes == Changes(
        providers={P1: None},
        inventories={(P1, "VCPU"): None, (P1, "DISK_GB"): None},
        tags={P1: NO_TAGS},
    )
    known.apply(changes)
    assert P1 not in known.providers
    assert known.inventories_of(P1) == {}
    assert known.trait_uses["STORAGE_DISK_SSD"] == 0


def test_delete_refusals() -> None:
    """Children are checked first, then allocations; an unknown provider is not found."""
    known = facts()
    add_provider(known, P1, VCPU=used(Inventory(8), 1))
    add_provider(known, P2, parent=P1)
    with Refused(Code.PROVIDER_HAS_CHILDREN) as refusal:
        providers.delete(known, P1)
    assert "It has child resource providers." in refusal.message
    known.apply(providers.delete(known, P2))
    with Refused(Code.PROVIDER_IN_USE) as refusal:
        providers.delete(known, P1)
    assert "Resource provider has allocations." in refusal.message
    with Refused(Code.PROVIDER_NOT_FOUND) as refusal:
        providers.delete(known, P2)
    assert f"No resource provider with uuid {P2} found for delete" in refusal.message


def test_later_decisions_of_a_batch_see_the_earlier_ones() -> None:
    """Renamed names and new children count for later decisions of the same batch."""
    known = facts()
    add_provider(known, P1, name="one")
    known.apply(providers.update(known, NOW, P1, "uno", False, None, True)[0])
    changes, _ = providers.create(known, NOW, P2, "one", P1)
    known.apply(changes)
    with Refused(Code.PROVIDER_HAS_CHILDREN):
        providers.delete(known, P1)
    known.apply(providers.delete(known, P2))
    known.apply(providers.delete(known, P1))
    assert known.providers == {}
    assert known.names == {}
