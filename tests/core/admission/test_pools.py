"""Creation, change and deletion of pools; a refusal changes nothing."""

from typing import Any

import pytest

from moorage.core.admission import pools
from moorage.core.admission.model import Pacing, Pool, Rest
from moorage.core.admission.units import rested
from moorage.core.clock import SECOND, Instant
from moorage.core.errors import Code
from moorage.core.limits import RESTS_MAX
from tests.core.admission.build import START, Refused, World, spec


@pytest.fixture
def world() -> World:
    """Return a world with pool p of two units."""
    made = World()
    made.pool("p", 2)
    return made


def put(world: World, name: str, generation: int | None = None, **more: Any) -> Pool:
    """Create or change a pool, and return it."""
    made = pools.put(world.facts, world.moment, world.wall, name, spec(**more), generation)
    return world.do(made)


def test_a_new_pool(world: World) -> None:
    """A new pool is empty, and its times come from the wall clock."""
    pool = world.facts.pools["p"]
    assert (pool.generation, pool.occupied, pool.waiting, pool.gangs) == (1, 0, 0, 0)
    assert pool.created_at == pool.updated_at == world.wall


def test_an_equal_description_changes_nothing(world: World) -> None:
    """An equal description keeps the generation; a different one raises it."""
    assert put(world, "p", limit=2).generation == 1
    assert put(world, "p", limit=3).generation == 2
    assert world.pause("p").generation == 3
    assert world.pause("p").generation == 3


def test_generations_are_compared(world: World) -> None:
    """Generation 0 demands a new pool, another number that generation, and None nothing."""
    with Refused(Code.POOL_EXISTS):
        put(world, "p", 0)
    with Refused(Code.POOL_GENERATION):
        put(world, "p", 2)
    with Refused(Code.POOL_NOT_FOUND):
        put(world, "new", 1)
    assert put(world, "p", 1, limit=5).spec.limit == 5
    assert put(world, "new", 0).generation == 1


@pytest.mark.parametrize(
    "name",
    ["a", "install/azure-4", "deploy/conductor-group-a", "a.b_c-d/0", "x" * 255, "a--b--c"],
)
def test_valid_names(world: World, name: str) -> None:
    """Names are like paths, up to 255 characters."""
    assert put(world, name).name == name


@pytest.mark.parametrize(
    "name", ["", "/", "/a", "a/", "a//b", "A", "a b", "ä", "a/../b", ".", "x" * 256, "a\n"]
)
def test_invalid_names(world: World, name: str) -> None:
    """Names that could not be part of a URL path are refused."""
    with Refused(Code.INVALID):
        put(world, name)


@pytest.mark.parametrize(
    "more",
    [
        {"limit": -1},
        {"limit": 1 << 31},
        {"limit": None},
        {"ttl": SECOND - 1},
        {"ttl": 7_200 * SECOND},
        {"ttl_max": 367 * 86_400 * SECOND},
        {"hold": 0},
        {"cooldown": -1},
        {"cooldown": 367 * 86_400 * SECOND},
        {"pacing": Pacing(0)},
        {"pacing": Pacing(SECOND, 0)},
        {"pacing": Pacing(SECOND, 1, -1)},
        {"quota": 0},
        {"queue_max": 0},
        {"queue_max": 1_000_001},
        {"labels": {"x" * 64: ""}},
    ],
)
def test_invalid_descriptions(world: World, more: dict[str, Any]) -> None:
    """An invalid description is refused and changes nothing."""
    before = world.facts.pools["p"]
    with Refused(Code.INVALID):
        put(world, "p", **more)
    assert world.facts.pools["p"] == before


def test_a_pool_has_slots_or_units(world: World) -> None:
    """A pool of slots cannot become one of units, nor the reverse."""
    world.slots("s", "a")
    with Refused(Code.INVALID):
        world.pool("p", None)
    with Refused(Code.INVALID):
        world.pool("s", 3)
    assert world.pool("s", None, quota=1).spec.quota == 1


def test_a_pool_in_use_is_not_deleted(world: World) -> None:
    """A pool with leases or tickets cannot be deleted; its slots are deleted with it."""
    world.slots("s", "a")
    world.ask("a", {"s": 1})
    with Refused(Code.POOL_IN_USE):
        pools.delete(world.facts, world.moment, "s")
    world.pause("s")
    world.ask("b", {"s": 1})
    world.release("a")
    with Refused(Code.POOL_IN_USE):
        pools.delete(world.facts, world.moment, "s")
    world.release("b")
    made, _ = pools.delete(world.facts, world.moment, "s")
    assert (made.pools, made.slots) == ({"s": None}, {("s", "a"): None})
    with Refused(Code.POOL_NOT_FOUND):
        pools.delete(world.facts, world.moment, "x")
    with Refused(Code.POOL_NOT_FOUND):
        world.pause("x")


def test_a_shorter_cooldown_takes_effect_at_once(world: World) -> None:
    """Running cooldowns are cut to the new one; without a cooldown they end."""
    world.pool("p", 2, cooldown=100 * SECOND)
    world.ask("a", {"p": 2})
    world.release("a")
    world.pool("p", 2, cooldown=10 * SECOND)
    assert world.facts.pools["p"].resting == (Rest(Instant(START + 10 * SECOND), 2),)
    world.ask("b")
    assert world.states()["b"] == "w"
    world.pool("p", 2)
    assert world.states()["b"] == "g"


def test_cooldowns_stay_few() -> None:
    """The list of cooldowns is bounded; none ends early, and none more than 1/32 late."""
    cooldown, rests = 3_200_000, ()
    exact: list[int] = []
    for at in range(0, 3 * cooldown, 17_000):
        rests = rested(rests, Instant(at), spec(1, cooldown=cooldown), "released", 1)
        exact = [until for until in exact if until > at] + [at + cooldown]
        assert len(rests) <= RESTS_MAX
        flat = [rest.until for rest in rests for _ in range(rest.units)]
        assert len(flat) >= len(exact), "a unit in cooldown was forgotten"
        late = [until - right for until, right in zip(flat[-len(exact) :], exact, strict=True)]
        assert min(late) >= 0
        assert max(late) <= cooldown // 32
    assert len(rests) > 20


def test_few_cooldowns_are_exact() -> None:
    """Up to the bound the end of every cooldown is exact."""
    rests: tuple[Rest, ...] = ()
    for at in range(RESTS_MAX):
        rests = rested(rests, Instant(at), spec(1, cooldown=1_000), "released", 2)
    assert rests == tuple(Rest(Instant(at + 1_000), 2) for at in range(RESTS_MAX))
    assert rested(rests, Instant(2_000), spec(1), "released", 5) == ()
