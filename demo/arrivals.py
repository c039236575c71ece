"""Which job comes when: the same for the same seed, whatever the machine's speed."""

import heapq
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from demo.setting import (
    PAUSED_FROM,
    POOLS,
    ROLLOUT,
    ROLLOUT_EVERY,
    ROLLOUT_FROM,
    SLOTS,
    SUITES,
    USERS,
    Host,
    PoolSetting,
)

ASKING_SECONDS = 240.0
"""How long jobs still ask for a paused pool, until people hear of it."""


@dataclass(frozen=True)
class Arrival:
    """A job that asks for a unit of a pool."""

    at: float
    """Seconds since the past began."""
    pool: PoolSetting
    number: int
    """Within its pool."""
    seconds: float
    """How long it runs."""
    result: str
    labels: dict[str, str]
    priority: int
    wishes: dict[str, str]
    """Labels of the slot that it asks for."""

    @property
    def key(self) -> str:
        """The key of its request."""
        return f"{self.pool.name}-{self.number}"


def arrivals(seed: int, hosts: int, past: int) -> Iterator[Arrival]:
    """Yield all jobs of the example in the order of their arrival, without end.

    `past`: how many seconds of them come before the example is shown.
    """
    streams = [_jobs(pool, seed, past) for pool in POOLS]
    rollout = _rollout(seed, hosts, past)
    return heapq.merge(*streams, rollout, key=lambda one: (one.at, one.key))


def _jobs(pool: PoolSetting, seed: int, past: int) -> Iterator[Arrival]:
    """Yield the jobs of a pool: more come at some times than at others."""
    dice = random.Random(f"{seed}/{pool.name}")
    busiest = pool.per_minute * (1 + pool.swing) / 60
    at, number = 0.0, 0
    while not (pool.paused and at > past * PAUSED_FROM + ASKING_SECONDS):
        at += dice.expovariate(busiest)
        wave = math.sin(2 * math.pi * (at / pool.period + _phase(pool)))
        if dice.random() * (1 + pool.swing) > 1 + pool.swing * wave:
            continue
        number += 1
        yield _arrival(pool, at, number, dice)


def _phase(pool: PoolSetting) -> float:
    """Return where in its wave a pool begins: no two are busy at the same time."""
    return POOLS.index(pool) / len(POOLS)


def _arrival(pool: PoolSetting, at: float, number: int, dice: random.Random) -> Arrival:
    labels = {
        "job": f"{dice.choice(SUITES)}-{number}",
        "host": f"runner-{dice.randrange(24):02d}",
        "user": dice.choice(USERS),
        "build": f"https://ci.example.org/{pool.name}/builds/{10_000 + number}",
    }
    somewhere = dice.random() < 0.5
    region = dice.choice([*SLOTS])
    return Arrival(
        at=at,
        pool=pool,
        number=number,
        seconds=dice.uniform(*pool.seconds),
        result=_result(pool, dice),
        labels=labels,
        priority=dice.choice((0, 0, 0, 0, 5)),
        wishes={"region": region} if pool.slots and somewhere else {},
    )


def _result(pool: PoolSetting, dice: random.Random) -> str:
    failed = dice.random() < pool.failures
    return dice.choice(("failed", "throttled")) if failed else "ok"


def _rollout(seed: int, hosts: int, past: int) -> Iterator[Arrival]:
    """Yield the hosts of a rollout, one after the other, with the labels of a real one."""
    dice = random.Random(f"{seed}/{ROLLOUT.name}")
    wave = ROLLOUT.name.rpartition("/")[2]
    chosen = [host for host in map(Host, range(hosts)) if host.kind == 0]
    for number, host in enumerate(chosen):
        yield Arrival(
            at=past * ROLLOUT_FROM + number * ROLLOUT_EVERY,
            pool=ROLLOUT,
            number=number,
            seconds=dice.uniform(*ROLLOUT.seconds),
            result=_result(ROLLOUT, dice),
            labels={"holder": host.name, "node": host.uuid, "verb": "service", "wave": wave},
            priority=0,
            wishes={},
        )


def wanted(arrival: Arrival, ttl: float, patience: float) -> dict[str, Any]:
    """Return the body of its request."""
    need = {"pool": arrival.pool.name, "units": 1, "labels": arrival.wishes}
    return {
        "needs": [need],
        "key": arrival.key,
        "ttl": ttl,
        "patience": patience,
        "priority": arrival.priority,
        "labels": arrival.labels,
    }
