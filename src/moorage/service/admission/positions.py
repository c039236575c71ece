"""Where tickets stand: one pass over a pool's line serves everybody who asks within a second."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from msgspec import structs

from moorage.core.admission.facts import Changes, Facts
from moorage.core.admission.forecast import why
from moorage.core.admission.forecast.eta import Floor
from moorage.core.admission.forecast.queue_order import Queue, queue_of
from moorage.core.admission.forecast.why import Standing, View
from moorage.core.admission.model import Lease
from moorage.core.service_time import Timeline, When
from moorage.store.admission.line_pass import Pass, pass_load
from moorage.store.api import Engine

PASS_SECONDS = 1.0
"""How old a pass may be that is told."""

SHORT = 256
"""Lines of so many tickets are passed over anew whenever something has changed here."""

POOLS_MAX = 1_000
"""Pools of which a pass is kept: those that were passed over last."""

GANGS_MAX = 32
"""Tickets of a line that need other pools, too, of which those pools are looked at: the first."""

OTHERS_MAX = 8
"""Pools that are looked at for them."""


@dataclass(slots=True)
class _Seen:
    """A pass, and what is drawn from it for all who ask; no view: there is no such pool."""

    read: Pass
    queue: Queue
    plain: View | None
    """As if nobody in this line needed other pools."""
    view: View | None = None
    """With what those wait for in other pools; None: nobody has asked for it yet."""


class _Passes:
    """The last passes over the lines of pools, shared by all who ask at the same time."""

    def __init__(
        self, engine: Engine, when: Callable[[Timeline], When], tickets: int | None
    ) -> None:
        """Take what it works with; `tickets`: how many of each line are read; None: all."""
        self._engine = engine
        self._when = when
        self._tickets = tickets
        self._passes: dict[str, tuple[float, _Seen]] = {}
        """With the time of each, in the loop's time; the newest last."""
        self._changed: set[str] = set()
        """Pools that have changed since their pass."""
        self._under_way: dict[str, asyncio.Task[_Seen]] = {}

    def note(self, pools: Iterable[str]) -> None:
        """Remember which pools have changed, of those that anybody has asked about."""
        for pool in pools:
            if pool in self._passes or pool in self._under_way:
                self._changed.add(pool)

    async def of(self, pool: str) -> _Seen:
        """Return a pass that is new enough to be told."""
        loop = asyncio.get_running_loop()
        known = self._passes.get(pool)
        is_short = known is None or len(known[1].queue.places) <= SHORT
        stale = is_short and pool in self._changed
        if known is not None and not stale and loop.time() - known[0] < PASS_SECONDS:
            return known[1]
        task = self._under_way.get(pool)
        # Of a long line one pass is under way at a time: they would pile up where much happens.
        if task is None or stale:
            self._changed.discard(pool)
            task = self._under_way[pool] = loop.create_task(self._read(pool))
        return await asyncio.shield(task)

    async def _read(self, pool: str) -> _Seen:
        """Pass over a pool's line; keep the pass, unless one that began later is kept already."""
        at = asyncio.get_running_loop().time()
        mine = asyncio.current_task()
        try:
            one = self._seen(pool, await self._engine.read_aside(pass_load(pool, self._tickets)))
        finally:
            if self._under_way.get(pool) is mine:  # a later one may be done already
                del self._under_way[pool]
        kept = self._passes.get(pool)
        if kept is None or kept[0] < at:
            self._keep(pool, at, one)
        return one

    def _keep(self, pool: str, at: float, one: _Seen) -> None:
        self._passes.pop(pool, None)
        self._passes[pool] = (at, one)
        while len(self._passes) > POOLS_MAX:
            oldest = next(iter(self._passes))
            del self._passes[oldest]
            self._changed.discard(oldest)

    def _seen(self, pool: str, one: Pass) -> _Seen:
        found = one.facts.pools.get(pool)
        if found is None:
            return _Seen(one, Queue(), None)
        moment = self._when(one.facts.timeline).moment
        queue = queue_of(one.facts, moment, found, one.waiters)
        evidence = structs.replace(one.evidence, line=queue.line)
        return _Seen(one, queue, why.view_of(one.facts, found, evidence))


class Standings:
    """Where tickets stand, and who is first. Raises StoreError."""

    def __init__(self, engine: Engine, when: Callable[[Timeline], When]) -> None:
        self._when = when
        self._lines = _Passes(engine, when, None)
        self._heads = _Passes(engine, when, 1)

    async def of(self, ticket: Lease) -> Standing | None:
        """Return where a ticket stands; None: a pool of it is gone."""
        return await self._standing(
            ticket, {need.pool: await self._lines.of(need.pool) for need in ticket.needs}
        )

    async def first(self, pool: str) -> tuple[Lease, Standing] | None:
        """Return the ticket that is first in a pool's line and where it stands; None: no one is.

        That takes no look at the rest of the line; at other lines, if it needs other pools, too.
        """
        here = await self._heads.of(pool)
        ticket = here.read.first
        if ticket is None:
            return None
        others = [need.pool for need in ticket.needs if need.pool != pool]
        passes = {pool: here} | {name: await self._lines.of(name) for name in others}
        standing = await self._standing(ticket, passes)
        return None if standing is None else (ticket, standing)

    async def _standing(self, ticket: Lease, passes: dict[str, _Seen]) -> Standing | None:
        facts = _joined(passes)
        if any(pool not in facts.pools for pool in passes):
            return None
        views = {pool: await self._view(pool, seen) for pool, seen in passes.items()}
        return why.standing(
            facts,
            self._when(facts.timeline).moment,
            ticket,
            {pool: seen.queue.place_of(ticket, pool) for pool, seen in passes.items()},
            {pool: view for pool, view in views.items() if view is not None},
        )

    def note(self, changes: Changes, _when: When) -> None:
        """Look anew at pools that have changed."""
        self._lines.note(changes.pools)
        self._heads.note(changes.pools)

    async def _view(self, pool: str, seen: _Seen) -> View | None:
        """Return what tickets of a pool are told from, with what its gangs wait for elsewhere."""
        if seen.view is None and seen.plain is not None:
            floors = await self._floors(pool, seen)
            if not floors:
                seen.view = seen.plain
            else:
                facts, evidence = seen.read.facts, seen.plain.evidence
                seen.view = why.view_of(facts, facts.pools[pool], evidence, floors)
        return seen.view

    async def _floors(self, pool: str, seen: _Seen) -> dict[int, Floor]:
        """Return when other pools let those start who need them besides this one, by their index.

        Each of the other pools is taken by itself: what its own gangs wait for is not followed.
        """
        gangs = seen.queue.gangs[:GANGS_MAX]
        names = dict.fromkeys(need.pool for _, gang in gangs for need in gang.needs)
        others = [name for name in names if name != pool][:OTHERS_MAX]
        passes = {name: await self._lines.of(name) for name in others}
        views = {name: one.plain for name, one in passes.items() if one.plain is not None}
        queues = {name: one.queue for name, one in passes.items()}
        moment = self._when(seen.read.facts.timeline).moment
        return why.floors_of(_joined(passes), moment, gangs, queues, views)


def _joined(passes: dict[str, _Seen]) -> Facts:
    facts = Facts()
    for seen in passes.values():
        one = seen.read.facts
        facts.timeline = one.timeline
        facts.pools.update(one.pools)
        facts.slots.update(one.slots)
        facts.held.update(one.held)
    return facts
