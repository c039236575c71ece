"""The change feed and the audit log have every setting: one that is left out is lost silently."""

from dataclasses import fields
from typing import Any

import msgspec
import pytest

from moorage.core.admission.model import PoolSpec
from moorage.core.fleet.model import Group
from moorage.core.ledger.model import Inventory
from moorage.service.feed.change_rows import pool_spec_of
from moorage.wire.changes import GroupValue, InventoryValue, PoolSpecValue


def names(kind: Any) -> set[str]:
    """Return the names of the fields of a type of either floor."""
    return (
        {*kind.__struct_fields__}
        if hasattr(kind, "__struct_fields__")
        else {one.name for one in fields(kind)}
    )


@pytest.mark.parametrize(
    ("value", "stored"),
    [(PoolSpecValue, PoolSpec), (GroupValue, Group), (InventoryValue, Inventory)],
)
def test_every_setting_is_told(value: type[Any], stored: type[Any]) -> None:
    """What can be set is in the feed, under the name that it is stored with."""
    assert names(value) == names(stored)


def test_what_is_not_named_is_not_told() -> None:
    """The control: why the test above is needed."""
    stored = msgspec.to_builtins(PoolSpec(limit=1, ttl=1, ttl_max=1))
    assert "note" not in pool_spec_of({**stored, "note": "for people"})
