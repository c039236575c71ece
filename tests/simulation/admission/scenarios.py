"""The world of a seed: pools of every kind, and their clients."""

from collections.abc import Iterator
from random import Random

from moorage.core.admission.model import FairShare, Need, Pacing, PoolSpec, Slot
from moorage.core.clock import Instant
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
    return Wishes(
        needs=needs,
        priority=random.choice([0, 0, 0, 0, 1]),
        ttl=random.choice([None, 5 * SECOND, 8 * SECOND]),
        hold=random.choice([None, None, None, 6 * SECOND]),
        patience=random.randrange(3, 12) * SECOND,
        forced=plain and not ledger and random.random() < 0.06,
        pull=random.random() < 0.12,
        allocations=str(random.randrange(1, CAPACITY + 1)) if ledger else None,
        work=random.randrange(1, 8) * SECOND,
    )


def most(spec: PoolSpec) -> int:
    """Return the most units that one client may wish for."""
    return min(2 if spec.limit is None else spec.limit, spec.quota or 9)
