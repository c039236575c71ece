"""Lock-delay: units that their holder did not return have a longer cooldown."""

from typing import Any

import pytest

from moorage.core.admission.compat import slots_by_name
from moorage.core.admission.model import UNRETURNED, Rest
from moorage.core.admission.units import rested
from moorage.core.clock import SECOND, Instant
from moorage.core.errors import Code
from moorage.core.limits import RESTS_MAX
from tests.core.admission.build import Refused, World, make_ask, spec

DELAY = 30 * SECOND


def end_lease(world: World, how: str) -> None:
    """End the lease `a` with this cause."""
    if how == "ttl_over":
        world.wait(60)
    elif how == "hold_over":
        world.hold("a", 1)
        world.wait(0.000_002)
    elif how == "retried":
        world.retry("a", make_ask("again", {"p": 2}))
        return
    else:
        world.release("a", cause=how)
    assert world.states()["a"] == how


@pytest.mark.parametrize("how", ["revoked", "ttl_over", "released", "hold_over"])
@pytest.mark.parametrize("cooldown", [0, 10, 50])
def test_unreturned_units_stay_unavailable(how: str, cooldown: int) -> None:
    """Unreturned units stay unavailable for the longer of lock-delay and cooldown."""
    world = World()
    world.pool("p", 1, lock_delay=DELAY, cooldown=cooldown * SECOND)
    world.ask("a")
    end_lease(world, how)
    world.ask("b")
    rest = max(30, cooldown) if how in UNRETURNED else cooldown
    if rest:
        world.wait(rest - 0.001)
        assert world.states()["b"] == "w"
        world.wait(0.001)
    assert world.states()["b"] == "g"


def test_a_retry_returns_its_units() -> None:
    """A retry with other needs returns its units, so the lock-delay does not apply."""
    world = World()
    world.pool("p", 2, lock_delay=DELAY)
    world.ask("a")
    end_lease(world, "retried")
    assert world.states()["again"] == "g"


def test_only_the_unreturned_slot_is_unavailable() -> None:
    """Only the unreturned slot is unavailable; one that was returned later is granted."""
    world = World()
    world.pool("p", None, lock_delay=DELAY)
    world.slots("p", "s", "t")
    world.ask("a")
    world.ask("b")
    assert world.lease("a").slots == {"p": ("s",)}
    world.release("a", cause="revoked")
    world.wait(1)
    world.release("b")
    world.ask("c")
    world.ask("d")
    assert world.lease("c").slots == {"p": ("t",)}
    assert world.states()["d"] == "w"
    world.wait(29)
    assert world.lease("d").slots == {"p": ("s",)}


def test_a_forced_request_ignores_the_lock_delay() -> None:
    """A forced request takes a slot in its cooldown if there is no other."""
    world = World()
    world.pool("p", None, lock_delay=DELAY)
    world.slots("p", "s")
    world.ask("a")
    world.release("a", cause="revoked")
    world.ask("b", forced=True)
    assert world.states()["b"] == "g"


def test_a_reaper_revokes() -> None:
    """After Boskos' reset a free slot has a cooldown; a dirty one is to be cleaned at once."""
    for dest, rests in (("free", True), ("dirty", False)):
        world = World()
        world.pool("p", None, lock_delay=DELAY)
        world.slots("p", "s")
        world.ask("a", owner="boskos:x", ttl=None)
        world.wait(10)
        changes, taken = slots_by_name.reset(
            world.facts, world.moment, world.wall, "p", "leased", 1, dest
        )
        assert taken == {"s": "x"}
        world.do((changes, None))
        assert (world.facts.slots["p"]["s"].rests_until > world.now) is rests


@pytest.mark.parametrize("changed", [{}, {"lock_delay": SECOND}, {"cooldown": SECOND}])
def test_a_shorter_lock_delay_takes_effect_at_once(changed: dict[str, Any]) -> None:
    """A shorter lock-delay also applies to units and slots that are in cooldown."""
    world = World()
    world.pool("p", 1, lock_delay=DELAY)
    world.pool("q", None, lock_delay=DELAY)
    world.slots("q", "s")
    for pool in "pq":
        world.ask(f"{pool}-held", {pool: 1})
        world.release(f"{pool}-held", cause="revoked")
        world.ask(f"{pool}-next", {pool: 1})
    world.pool("p", 1, **changed)
    world.pool("q", None, **changed)
    world.wait(1 if changed else 0)
    assert world.states()["p-next"] == world.states()["q-next"] == "g"


def test_bounds() -> None:
    """A negative lock-delay, and one above the longest duration, is refused."""
    world = World()
    for delay in (-1, 1 << 60):
        with Refused(Code.INVALID):
            world.pool("p", 1, lock_delay=delay)


def test_cooldowns_stay_few_with_a_long_lock_delay() -> None:
    """The list of cooldowns stays short, and returned units are delayed by 1/16 at most."""
    described = spec(1, cooldown=3_200_000, lock_delay=3_600 * SECOND)
    rests: tuple[Rest, ...] = ()
    exact: list[int] = []
    for n, at in enumerate(range(0, 20_000_000, 17_000)):
        cause = "revoked" if n % 3 == 0 else "released"
        rests = rested(rests, Instant(at), described, cause, 1)  # type: ignore[arg-type]  # either
        own = described.lock_delay if cause == "revoked" else described.cooldown
        exact = sorted([until for until in exact if until > at] + [at + own])
        assert len(rests) <= RESTS_MAX
        flat = [rest.until for rest in rests for _ in range(rest.units)]
        late = [until - right for until, right in zip(flat[-len(exact) :], exact, strict=True)]
        short = [one for one, right in zip(late, exact, strict=True) if right <= at + 3_200_000]
        assert min(late) >= 0
        assert max(late) <= described.lock_delay // 16
        assert max(short, default=0) <= described.cooldown // 16
