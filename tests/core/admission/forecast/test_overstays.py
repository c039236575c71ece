"""A line waits behind an old lease: only one that is old by what is usual in its pool is named."""

import pytest

from moorage.core.admission.forecast.holders import SlotHolder
from moorage.core.admission.forecast.overstays import MUCH, PASTS_LEAST, overstay_of
from moorage.core.admission.model import Pool, PoolSpec
from moorage.core.admission.pools import new_pool
from moorage.core.clock import MINUTE, SECOND, Instant
from moorage.core.ids import LeaseId
from moorage.wire.labels import Naming

START = Instant(1_000_000 * SECOND)
LATEST = Instant(START + 30 * MINUTE)
PASTS = (60.0,) * 9 + (100.0,)
"""The median is a minute, so four minutes are usual."""
USUAL = 4 * MINUTE
HOLDER = SlotHolder(LeaseId("l"), START, Naming("alice"))


def pool_of(hold: int | None = None) -> Pool:
    """Return a pool of several units."""
    return new_pool("p", PoolSpec(limit=5, ttl=MINUTE, ttl_max=MINUTE, hold=hold), START)


@pytest.mark.parametrize(
    ("hold", "pasts", "usual"),
    [
        (None, PASTS, USUAL),
        (10 * MINUTE, PASTS, 10 * MINUTE),
        (10 * MINUTE, (), 10 * MINUTE),
        (10 * MINUTE, (60.0,) * 8 + (900.0,) * 2, 15 * MINUTE),
        (None, (60.0,) * 8 + (900.0,) * 2, 15 * MINUTE),
        (None, (60.0,) * (PASTS_LEAST - 1), None),
        (None, (), None),
    ],
)
def test_what_is_usual(hold: int | None, pasts: tuple[float, ...], usual: int | None) -> None:
    """The hold, or what past leases took, of which there must be some, if that is more."""
    pool = pool_of(hold)
    if usual is None:
        assert overstay_of(pool, HOLDER, START, pasts, Instant(START + 10**6 * MINUTE)) is None
        return
    at = Instant(START + usual)
    assert overstay_of(pool, HOLDER, START, pasts, at) is None
    found = overstay_of(pool, HOLDER, START, pasts, Instant(at + 1))
    assert found is not None
    assert (found.holder, found.usual, found.blocks) == (HOLDER, usual, True)


@pytest.mark.parametrize("newest", [LATEST, None])
def test_while_the_line_moves_only_a_much_older_one_is_named(newest: Instant | None) -> None:
    """Others come and go, or there are too many to know; a long job is no trouble then."""
    pool = pool_of()
    at = Instant(START + MUCH * USUAL)
    recent = None if newest is None else Instant(at - MINUTE)
    assert overstay_of(pool, HOLDER, recent, PASTS, at) is None
    found = overstay_of(pool, HOLDER, recent, PASTS, Instant(at + 1))
    assert found is not None and not found.blocks


def test_short_leases_are_never_old() -> None:
    """Where leases last for milliseconds, one of some seconds is nothing that people look at."""
    pasts = (0.01,) * 20
    assert overstay_of(pool_of(), HOLDER, START, pasts, Instant(START + MINUTE - 1)) is None
    assert overstay_of(pool_of(), HOLDER, START, pasts, Instant(START + MINUTE)) is not None
    assert overstay_of(pool_of(), None, None, pasts, Instant(START + MINUTE)) is None
