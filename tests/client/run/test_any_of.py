"""`--any-of` and `any_of`: what is asked for, what a file keeps, and what is said."""

import pytest

from moorage.client.leasing.options import options_of
from moorage.client.run.api_types import Lease, LeaseRequest, Need
from moorage.client.run.lease.nesting import covers
from moorage.client.run.parse import UsageError, any_of_texts


def lease_of(**units: int) -> Lease:
    """Return a granted lease with these units."""
    return Lease(
        id="l",
        state="granted",
        token=None,
        pools=tuple(units),
        needs=tuple(units.items()),
        slots={},
        ttl=None,
        hold=None,
        expires_at=None,
        hold_until=None,
        cause=None,
        detail="",
        waiting=None,
    )


def test_texts() -> None:
    """Alternatives by commas, pools of one by +, units and labels as elsewhere."""
    assert any_of_texts(["a,b=2", "c+d=3:x=1:y=2"]) == (
        (Need("a", 1),),
        (Need("b", 2),),
        (Need("c", 1), Need("d", 3, (("x", "1"), ("y", "2")))),
    )


@pytest.mark.parametrize("text", ["", "a,", "a=0", "a=x", "+a", "a:b", "a:=b", "a,,b"])
def test_wrong_texts(text: str) -> None:
    """Every part must name a pool."""
    with pytest.raises(UsageError):
        any_of_texts([text])


def test_bodies() -> None:
    """An older server gets no members that it does not know, unless they are needed."""
    plain = LeaseRequest(needs=(("a", 1),))
    assert {"any_of", "choose"}.isdisjoint(plain.body("k"))
    wish = LeaseRequest(needs=(("dns", 1),), any_of=any_of_texts(["a,b=2"]), in_order=True)
    body = wish.body("k")
    assert body["needs"] == [{"pool": "dns", "units": 1}]
    assert body["any_of"] == [[{"pool": "a", "units": 1}], [{"pool": "b", "units": 2}]]
    assert body["choose"] == "order"
    assert wish.pools == "dns and any of a, b (2 units)"
    assert wish.pool_names == {"a", "b", "dns"}


def test_what_was_granted_is_said() -> None:
    """Not what was asked for."""
    wish = LeaseRequest(needs=(), any_of=any_of_texts(["a,b"]))
    assert lease_of(b=1).pools_of(wish) == "b"
    assert lease_of(b=1)._replace(state="waiting").pools_of(wish) == "any of a, b"
    assert covers(lease_of(b=1), wish)
    assert not covers(lease_of(c=1), wish)


def test_arguments_of_python() -> None:
    """Names, or units by pool; labels of slots by pool."""
    wish = options_of(
        any_of=["a", {"b": 2}], choose="order", slot={"b": {"region": "eu"}}, about=False
    ).wish
    assert wish.any_of == ((Need("a", 1),), (Need("b", 2, (("region", "eu"),)),))
    assert (wish.needs, wish.in_order) == ((), True)
    for wrong in ({"any_of": [{}]}, {"any_of": ["a"], "choose": "random"}, {}):
        with pytest.raises(ValueError, match=r"unit|choose"):
            options_of(**wrong)  # type: ignore[arg-type]  # on purpose
