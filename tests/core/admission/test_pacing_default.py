"""How a pool is paced that leaves it to us."""

import pytest
from msgspec import structs

from moorage.core.admission.model import Pacing, pacing_default
from moorage.core.admission.slot_config import SlotConfig, sync
from moorage.core.clock import SECOND
from tests.core.admission.boskos_pools import NOW, dynamic, grows, names, ranch, slot, static


@pytest.mark.parametrize(
    ("limit", "hold", "interval", "burst"),
    [(50, 1200, 24, 5), (1, 60, 60, 1), (9, 9, 1, 1), (19, 38, 2, 1), (20, 40, 2, 2)],
)
def test_a_pool_with_a_hold(limit: int, hold: int, interval: int, burst: int) -> None:
    """One interval is hold/limit, and a tenth of the limit may start at once, one at least."""
    assert pacing_default(limit, hold * SECOND) == Pacing(interval * SECOND, burst)


@pytest.mark.parametrize(("limit", "hold"), [(None, 60), (0, 60), (50, None)])
def test_pools_without(limit: int | None, hold: int | None) -> None:
    """Without a limit or a hold there is nothing to tell an interval from."""
    assert pacing_default(limit, hold) is None


def test_an_interval_is_never_nothing() -> None:
    """However many units share a short hold."""
    assert pacing_default(1_000, 10) == Pacing(1, 100)


def test_a_pacing_that_follows_goes_on_to_follow() -> None:
    """As slots come and go; one that an operator has said stays, and so does no pacing at all."""
    hold = 600 * SECOND
    for said, becomes in (
        (pacing_default(2, hold), pacing_default(4, hold)),
        (Pacing(SECOND), Pacing(SECOND)),
        (None, None),
    ):
        facts = ranch(slot("a", "t0"), slot("b", "t0"))
        spec = structs.replace(facts.pools["t0"].spec, hold=hold, pacing=said)
        facts.pools["t0"] = structs.replace(facts.pools["t0"], spec=spec)
        changes, _ = sync(facts, NOW, SlotConfig((static("t0", *"abcd"),)), names())
        facts.apply(changes)
        assert facts.pools["t0"].spec.pacing == becomes


def test_a_pacing_outlives_slots_that_are_gone_for_a_while() -> None:
    """A growing pool is paced by as many slots as it may have, however many there are now."""
    hold = 600 * SECOND
    facts = ranch(slot("a", "t0"), t0=grows(1, 10))
    spec = structs.replace(facts.pools["t0"].spec, hold=hold, pacing=pacing_default(10, hold))
    facts.pools["t0"] = structs.replace(facts.pools["t0"], spec=spec)
    changes, _ = sync(facts, NOW, SlotConfig((dynamic("t0", 1, 10),)), names())
    facts.apply(changes)
    assert facts.pools["t0"].spec.pacing == pacing_default(10, hold)
