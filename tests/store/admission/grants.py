"""Pools, tickets and leases like those of decisions, and batches to save them, for store tests."""

from collections.abc import Callable
from typing import Any

from msgspec import structs

from moorage.core.admission.facts import Changes, Facts, Keys
from moorage.core.admission.model import FencingToken, Lease, Need, Pool, PoolSpec, Slot
from moorage.core.clock import Instant
from moorage.core.ids import LeaseId
from moorage.core.service_time import Timeline
from moorage.store.admission import load
from moorage.store.admission.save import AdmissionPart
from moorage.store.api import Engine, Plan
from moorage.store.batch import batch_save

AT = Instant(1_700_000_000_000_000)
MINUTE = 60_000_000


def lease_id(n: int) -> LeaseId:
    """Return the n-th lease's UUID."""
    return LeaseId(f"{n:08d}-eeee-4eee-8eee-eeeeeeeeeeee")


def pool(
    name: str,
    limit: int | None = 4,
    *,
    quota: int | None = None,
    cohort: str | None = None,
    **values: Any,
) -> Pool:
    """Return an unused pool, unless `values` say otherwise."""
    spec = PoolSpec(limit, MINUTE, 10 * MINUTE, quota=quota, labels={"of": name}, cohort=cohort)
    plain = Pool(name, spec, False, 1, 0, 0, 0, (), Instant(0), None, AT, AT)
    return structs.replace(plain, **values)


def ticket(n: int, *needs: str | Need, priority: int = 0, **values: Any) -> Lease:
    """Return the n-th ticket; a need given as a pool's name is one unit."""
    wanted = tuple(Need(need, 1) if isinstance(need, str) else need for need in needs)
    plain = Lease(
        id=lease_id(n),
        owner="owner",
        key=f"key-{n}",
        digest="digest",
        needs=wanted,
        state="waiting",
        priority=priority,
        arrival=n,
        ttl=MINUTE,
        hold=None,
        patience=MINUTE // 2,
        labels={},
        forced=False,
        pull=False,
        keep=False,
        asked_at=AT,
        heard_until=Instant(AT + MINUTE),
    )
    return structs.replace(plain, **values)


def granted(lease: Lease, n: int = 0, **values: Any) -> Lease:
    """Return a ticket as granted in this batch, the n-th of its grants."""
    plain = structs.replace(lease, state="granted", granted_at=AT, token=FencingToken(0, 0, n))
    return structs.replace(plain, **values)


def ended(lease: Lease, at: int = AT, **values: Any) -> Lease:
    """Return a lease or ticket as ended."""
    plain = structs.replace(lease, state="ended", ended_at=Instant(at), cause="released")
    return structs.replace(plain, **values)


def slot(pool_name: str, name: str, **values: Any) -> Slot:
    """Return a free slot, unless `values` say otherwise."""
    return structs.replace(Slot(pool_name, name, "free", "", None, {}, AT), **values)


def changed(*values: Pool | Lease | Slot) -> Changes:
    """Return changes with these after-images."""
    changes = Changes()
    for value in values:
        if isinstance(value, Pool):
            changes.pools[value.name] = value
        elif isinstance(value, Slot):
            changes.slots[value.pool, value.name] = value
        else:
            changes.leases[value.id] = value
    return changes


def saving(facts: Facts, changes: Changes, timeline: Timeline | None = None) -> Plan[int]:
    """Save a batch as its transaction does; return its revision, 0 without followers."""
    told = yield from batch_save([AdmissionPart(facts, changes)], [], AT, timeline)
    return 0 if told is None else told[1]


async def run(
    engine: Engine,
    keys: Keys,
    decide: Callable[[Facts], Changes],
    timeline: Timeline | None = None,
) -> tuple[int, Changes]:
    """Load, decide, save and commit; return the revision and the changes as they were saved."""
    async with engine.transaction() as transaction:
        facts = await transaction.run(load.facts_load(keys))
        facts.timeline = timeline or facts.timeline
        changes = decide(facts)
        facts.apply(changes)
        revision = await transaction.run(saving(facts, changes, timeline))
        await transaction.commit()
    return revision, changes


async def saved(engine: Engine, *values: Pool | Lease | Slot) -> int:
    """Save these values; return the revision."""
    return (await run(engine, Keys(), lambda _: changed(*values)))[0]


async def facts_of(engine: Engine, keys: Keys) -> Facts:
    """Load facts outside of a batch."""
    async with engine.transaction() as transaction:
        return await transaction.run(load.facts_load(keys))
