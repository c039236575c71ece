"""Who a lease is for, as people see it."""

import pytest

from moorage.core.admission.owners import GOVERNORS
from moorage.wire.labels import holder_of


@pytest.mark.parametrize(
    ("owner", "label", "shown"),
    [
        (GOVERNORS, "node-1", "node-1"),
        ("ci", None, "ci"),
        ("ci", "ci", "ci"),
        ("ci", "node-1", "node-1 (ci)"),
        ("ci", GOVERNORS, "governor:hosts (ci)"),
        ("project/governor:x", "node-1", "node-1 (project/governor:x)"),
    ],
)
def test_nobody_passes_as_a_host(owner: str, label: str | None, shown: str) -> None:
    """Anybody can set the label; only that of a governor replaces the owner."""
    assert holder_of(owner, {"holder": label}) == shown
