"""Units whose holder may act on them yet rest for longer than others."""

from typing import Any

import pytest

from moorage.core.admission.compat import slots_by_name
from moorage.core.admission.model import UNRETURNED, Rest
from moorage.core.admission.units import rested
from moorage.core.clock import SECOND, Instant
from moorage.core.errors import Code
from moorage.core.limits import RESTS_MAX
from tests.core.admission.build import Refused, World, spec, wish

DELAY = 30 * SECOND


def ended(world: World, how: str) -> None:
    """Let the lease of `a` end."""
    if how == "ttl_over":
        world.wait(60)
    elif how == "hold_over":
        world.hold("a", 1)
        world.wait(0.000_002)
    elif how == "retried":
        world.retry("a", wish("again", {"p": 2}))
        return
    else:
        world.release("a", cause=how)
    assert world.states()["a"] == how


@pytest.mark.parametrize("how", ["revoked", "ttl_over", "released", "hold_over"])
@pytest.mark.parametrize("cooldown", [0, 10, 50])
def test_what_was_not_given_back_rests(how: str, cooldown: int) -> None:
    """For the lock-delay, or for the cooldown if that is longer; all else for the cooldown."""
    world = World()
    world.pool("p", 1, lock_delay=DELAY, cooldown=cooldown * SECOND)
    world.ask("a")
    ended(world, how)
    world.ask("b")
    rest = max(30, cooldown) if how in UNRETURNED else cooldown
    if rest:
        world.wait(rest - 0.001)
        assert world.states()["b"] == "w"
        world.wait(0.001)
    assert world.states()["b"] == "g"


def test_a_retry_is_no_loss() -> None:
    """Who retries for something else has given back what it held."""
    world = World()
    world.pool("p", 2, lock_delay=DELAY)
    world.ask("a")
    ended(world, "retried")
    assert world.states()["again"] == "g"


def test_the_very_slot_rests() -> None:
    """Others that were freed later, and given back, are granted meanwhile."""
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


def test_what_is_forced_does_not_wait() -> None:
    """An operator's `force` takes a slot that rests, if there is no other."""
    world = World()
    world.pool("p", None, lock_delay=DELAY)
    world.slots("p", "s")
    world.ask("a")
    world.release("a", cause="revoked")
    world.ask("b", forced=True)
    assert world.states()["b"] == "g"


def test_a_reaper_revokes() -> None:
    """What Boskos' reset takes as free rests, too; as dirty somebody is to work on it at once."""
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
def test_a_shorter_rest_holds_for_what_rests_already(changed: dict[str, Any]) -> None:
    """Of units and of slots."""
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
    """A negative one is refused, and one longer than any duration."""
    world = World()
    for delay in (-1, 1 << 60):
        with Refused(Code.INVALID):
            world.pool("p", 1, lock_delay=delay)


def test_rests_stay_few_with_a_long_lock_delay() -> None:
    """Units that were given back are hardly kept longer by others that were not."""
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
        late = [told - right for told, right in zip(flat[-len(exact) :], exact, strict=True)]
        short = [one for one, right in zip(late, exact, strict=True) if right <= at + 3_200_000]
        assert min(late) >= 0
        assert max(late) <= described.lock_delay // 16
        assert max(short, default=0) <= described.cooldown // 16
