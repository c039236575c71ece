"""The default pacing of a pool."""

import pytest
from msgspec import structs

from moorage.core.admission.model import Pacing
from moorage.core.admission.pacing import pacing_default
from moorage.core.admission.slot_config import SlotConfig, sync
from moorage.core.clock import SECOND
from tests.core.admission.boskos_pools import (
    NOW,
    dynamic,
    facts_with,
    grows,
    new_names,
    slot,
    static,
)


@pytest.mark.parametrize(
    ("limit", "hold", "interval", "burst"),
    [(50, 1200, 24, 5), (1, 60, 60, 1), (9, 9, 1, 1), (19, 38, 2, 1), (20, 40, 2, 2)],
)
def test_a_pool_with_a_hold(limit: int, hold: int, interval: int, burst: int) -> None:
    """The interval is hold/limit, and the burst a tenth of the limit, at least one."""
    assert pacing_default(limit, hold * SECOND) == Pacing(interval * SECOND, burst)


@pytest.mark.parametrize(("limit", "hold"), [(None, 60), (0, 60), (50, None)])
def test_pools_without_limit_or_hold(limit: int | None, hold: int | None) -> None:
    """Without a limit or a hold there is no default pacing."""
    assert pacing_default(limit, hold) is None


def test_an_interval_is_never_zero() -> None:
    """The interval is at least 1 µs, however many units share a short hold."""
    assert pacing_default(1_000, 10) == Pacing(1, 100)


def test_a_default_pacing_follows_the_slots() -> None:
    """A default pacing follows the number of slots; an explicit one, or none, stays."""
    hold = 600 * SECOND
    for pacing, expected in (
        (pacing_default(2, hold), pacing_default(4, hold)),
        (Pacing(SECOND), Pacing(SECOND)),
        (None, None),
    ):
        facts = facts_with(slot("a", "t0"), slot("b", "t0"))
        spec = structs.replace(facts.pools["t0"].spec, hold=hold, pacing=pacing)
        facts.pools["t0"] = structs.replace(facts.pools["t0"], spec=spec)
        changes, _ = sync(facts, NOW, SlotConfig((static("t0", *"abcd"),)), new_names())
        facts.apply(changes)
        assert facts.pools["t0"].spec.pacing == expected


def test_a_growing_pool_is_paced_by_its_most_slots() -> None:
    """The default pacing of a growing pool depends on its most slots, not on the present ones."""
    hold = 600 * SECOND
    facts = facts_with(slot("a", "t0"), t0=grows(1, 10))
    spec = structs.replace(facts.pools["t0"].spec, hold=hold, pacing=pacing_default(10, hold))
    facts.pools["t0"] = structs.replace(facts.pools["t0"], spec=spec)
    changes, _ = sync(facts, NOW, SlotConfig((dynamic("t0", 1, 10),)), new_names())
    facts.apply(changes)
    assert facts.pools["t0"].spec.pacing == pacing_default(10, hold)
