"""Requests are held for the first nodes of each set of needs, so that no unit stays free."""

from moorage.integrations.provisioning.hosts import Host
from moorage.integrations.provisioning.line import HELD_MAX, HELD_PER_KIND, chosen
from moorage.integrations.provisioning.start import Start


def starts(*kinds: str) -> list[Start]:
    """Return starts in the order of the line; each needs one pool."""
    return [
        Start(Host("ironic", str(number)), "active", {pool: 1}, {})
        for number, pool in enumerate(kinds)
    ]


def test_no_kind_is_left_out() -> None:
    """A long line of one pool does not keep those of another from being asked for."""
    found = chosen(starts(*["a"] * 1_000, "b"))
    assert len(found) == HELD_PER_KIND + 1
    assert [start.host.uuid for start in found[:2]] == ["0", "1000"]


def test_they_are_bounded() -> None:
    """The first of each kind come before the second of any."""
    kinds = [f"rack-{number}" for number in range(HELD_MAX)]
    found = chosen(starts(*(kind for kind in kinds for _ in range(2))))
    assert len(found) == HELD_MAX
    assert {start.kind for start in found} == {((kind, 1),) for kind in kinds}
