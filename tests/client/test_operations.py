"""The tables of operations: their addresses, and what importing them costs."""

import subprocess
import sys

import pytest

from moorage.wire.operations import ROOMS, feed, leases, operations_by_id, pools


def test_addresses() -> None:
    """Values are quoted; only names that may span several segments keep their slashes."""
    assert pools.DRAIN_SLOT.address("a/b c", "d/e") == "/v1/pools/a/b%20c:slots/d%2Fe/drain"
    assert feed.WATCH.address(query={"kinds": None}) == "/v1/watch"
    query = {"mine": True, "label": ["a=1", "b=2"], "pool": None, "older": 1.5}
    address = leases.LIST_LEASES.address(query=query)
    assert address == "/v1/leases?mine=true&label=a%3D1&label=b%3D2&older=1.5"


def test_operations_have_different_places() -> None:
    """Each method of an address stands once, and each id names one operation."""
    every = operations_by_id()
    assert len({repr(one) for one in every.values()}) == len(set(every.values())) == len(every)


@pytest.mark.parametrize("room", ROOMS)
def test_a_table_imports_no_types(room: str) -> None:
    """The start of `moorage run` must not wait for dataclasses; asking for a type imports it."""
    code = f"""
import sys
from moorage.wire.operations import {room}, operations_by_id
assert not {{"dataclasses", "moorage.wire.dataclass"}} & {{*sys.modules}}
assert all(one.content.answer is not one for one in operations_by_id(["{room}"]).values())
assert "moorage.wire.dataclass" in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
