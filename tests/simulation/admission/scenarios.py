"""The world of a seed: pools of every kind, and their clients."""

from collections.abc import Iterator
from dataclasses import replace
from random import Random

from msgspec import structs

from moorage.core.admission.model import Need, Pacing, PoolSpec, Slot
from moorage.core.clock import Instant
from moorage.core.pool_values import FairShare
from moorage.wire.enums import Order
from tests.simulation.admission.clients import SECOND, Wishes

CAPACITY = 3
"""Of the ledger that leases with allocations share."""


def specs(random: Random) -> Iterator[tuple[str, PoolSpec]]:
    """Yield one to three pools."""
    for n in range(random.choice([1, 1, 2, 2, 3])):
        slotted = random.random() < 0.25
        limit = random.randrange(1, 4)
        ttl = random.randrange(6, 15) * SECOND
        yield (
            f"pool/{n}",
            PoolSpec(
                limit=None if slotted else limit,
                ttl=ttl,
                ttl_max=100 * SECOND,
                hold=random.choice([None, None, None, 8 * SECOND]),
                cooldown=random.choice([0, 0, 0, 3 * SECOND]),
                lock_delay=random.choice([0, 0, 7 * SECOND]),
                pacing=pacing(random),
                quota=random.choice([None, None, None, 2]),
                queue_max=random.choice([3, 100, 100]),
                on_retry=random.choice(["keep", "requeue"]),
                expire=random.choice(["free", "free", "free", "keep"]),
                fair_share=fair_share(Random(f"{n}/{ttl}")),
            ),
        )


GROUPS = ("main", "main", "branch")

IDLE = 6 * SECOND
"""How long the pools of templates stay, see `specs_of`."""

TEMPLATE = "made/*"


def specs_of(random: Random, plain: dict[str, PoolSpec]) -> dict[str, PoolSpec]:
    """Return pools of which some grant to the newest first, or are made on demand.

    All have one order, because gangs need pools of one.
    """
    order: Order = random.choice(["oldest", "oldest", "newest"])
    on_demand = random.random() < 0.3
    found = {}
    for name, spec in plain.items():
        made = on_demand and spec.limit is not None and random.random() < 0.7
        fresh = TEMPLATE.replace("*", name.removeprefix("pool/")) if made else name
        found[fresh] = structs.replace(
            spec, order=order, fair_share=None if order == "newest" else spec.fair_share
        )
    made_specs = [spec for name, spec in found.items() if is_made(name)]
    # All pools of a template have its settings.
    return {name: made_specs[0] if is_made(name) else spec for name, spec in found.items()}


def is_made(name: str) -> bool:
    """Is a pool of this name made on demand?"""
    return name.startswith(TEMPLATE.removesuffix("*"))


def grouped(random: Random, wishes: Wishes) -> Wishes:
    """Return the wishes of a client that may be in a group."""
    if random.random() < 0.6:
        return wishes
    return replace(wishes, group=random.choice(GROUPS), cancel_running=random.random() < 0.5)


def preemptible(random: Random, wishes: Wishes) -> Wishes:
    """Return wishes whose leases others may perhaps have stopped."""
    if random.random() < 0.6:
        return wishes
    return replace(wishes, preemptible=random.choice([1, 4, 20]) * SECOND)


def fair_share(random: Random) -> FairShare | None:
    """Return a fair share by owner, or more often none."""
    if random.random() < 0.6:
        return None
    return FairShare("owner", random.choice([1, 20, 500]) * SECOND)


def pacing(random: Random) -> Pacing | None:
    """Return a pacing, or more often none."""
    if random.random() < 0.6:
        return None
    interval = random.randrange(SECOND, 5 * SECOND)
    return Pacing(interval, random.choice([1, 1, 2, 3]), random.choice([0, 0, SECOND]))


def slots(random: Random, pool: str) -> list[Slot]:
    """Return the slots of a pool: two or three, and perhaps one in another state."""
    made = [
        Slot(pool, f"slot-{n}", "free", "", None, {}, Instant(0))
        for n in range(random.choice([2, 3]))
    ]
    if random.random() < 0.3:
        made.append(Slot(pool, "soiled", "dirty", "", None, {}, Instant(0)))
    return made


def wishes(random: Random, pools: dict[str, PoolSpec]) -> Wishes:
    """Return what a client wants and can get without faults."""
    gang = random.random() < 0.35
    names = sorted(
        random.sample(sorted(pools), random.randrange(2, 4))
        if gang and len(pools) > 2
        else pools
        if gang
        else [random.choice(sorted(pools))]
    )
    alone = [name for name in names if pools[name].fair_share is not None]
    names = alone[:1] or names  # a request for units of such a pool can name no other pool
    needs = tuple(Need(name, random.randrange(1, most(pools[name]) + 1)) for name in names)
    plain = all(pools[name].limit is not None for name in names)
    ledger = random.random() < 0.15
    any_of = alternatives(random, pools) if random.random() < 0.3 else ()
    plain = plain and not any_of
    return Wishes(
        needs=() if any_of else needs,
        any_of=any_of,
        in_order=random.random() < 0.3,
        priority=random.choice([0, 0, 0, 0, 1]),
        ttl=random.choice([None, 5 * SECOND, 8 * SECOND]),
        hold=random.choice([None, None, None, 6 * SECOND]),
        patience=random.randrange(3, 12) * SECOND,
        forced=plain and not ledger and random.random() < 0.06,
        pull=random.random() < 0.12,
        allocations=str(random.randrange(1, CAPACITY + 1)) if ledger else None,
        work=random.randrange(1, 8) * SECOND,
    )


def alternatives(random: Random, pools: dict[str, PoolSpec]) -> tuple[tuple[Need, ...], ...]:
    """Return two or three different alternatives, or none if the pools allow only one."""
    found: list[tuple[Need, ...]] = []
    for _ in range(random.choice([2, 3, 3])):
        names = sorted(random.sample(sorted(pools), min(len(pools), random.choice([1, 1, 2]))))
        needs = tuple(Need(name, random.randrange(1, most(pools[name]) + 1)) for name in names)
        if needs not in found:
            found.append(needs)
    named = {need.pool for needs in found for need in needs}
    if len(named) > 1 and any(pools[name].fair_share is not None for name in named):
        return ()  # a request for units of such a pool can name no other pool
    return tuple(found) if len(found) > 1 else ()


def most(spec: PoolSpec) -> int:
    """Return the most units that one client may wish for."""
    return min(2 if spec.limit is None else spec.limit, spec.quota or 9)
