"""Where tickets stand: one pass over a pool's line serves everybody who asks within a second."""

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from moorage.core.admission import line
from moorage.core.admission.eta import Place
from moorage.core.admission.facts import Changes, Facts
from moorage.core.admission.line import Standing, View
from moorage.core.admission.model import Lease, Timeline
from moorage.service.cases import When
from moorage.store.admission_pass import Pass, pass_load
from moorage.store.api import Engine

PASS_SECONDS = 1.0
"""How old a pass may be that is told."""

SHORT = 256
"""Lines of so many tickets are passed over anew whenever something has changed here."""

POOLS_MAX = 1_000
"""Pools of which a pass is kept."""


class _Seen(NamedTuple):
    """A pass, and what is drawn from it for all who ask; None: there is no such pool."""

    read: Pass
    view: View | None


class Standings:
    """The last passes over the lines of pools. Raises StoreError."""

    def __init__(self, engine: Engine, when: Callable[[Timeline], When]) -> None:
        self._engine = engine
        self._when = when
        self._passes: dict[str, tuple[float, _Seen]] = {}
        """With the time of each, in the loop's time."""
        self._changed: set[str] = set()
        """Pools that have changed since their pass."""
        self._under_way: dict[str, asyncio.Task[_Seen]] = {}

    async def of(self, ticket: Lease) -> Standing | None:
        """Return where a ticket stands; None: a pool of it is gone."""
        return self._standing(
            ticket, {need.pool: await self._pass(need.pool) for need in ticket.needs}
        )

    async def first(self, pool: str) -> tuple[Lease, Standing] | None:
        """Return the ticket that is first in a pool's line and where it stands; None: no one is."""
        here = await self._pass(pool)
        ticket = here.read.first
        if ticket is None:
            return None
        others = [need.pool for need in ticket.needs if need.pool != pool]
        passes = {pool: here} | {name: await self._pass(name) for name in others}
        standing = self._standing(ticket, passes)
        return None if standing is None else (ticket, standing)

    def _standing(self, ticket: Lease, passes: dict[str, _Seen]) -> Standing | None:
        facts = Facts()
        for one, _ in passes.values():
            facts.timeline = one.facts.timeline
            facts.pools.update(one.facts.pools)
            facts.slots.update(one.facts.slots)
            facts.held.update(one.facts.held)
        if any(pool not in facts.pools for pool in passes):
            return None
        return line.standing(
            facts,
            self._when(facts.timeline).moment,
            ticket,
            {pool: _place(seen.read, ticket, pool) for pool, seen in passes.items()},
            {pool: seen.view for pool, seen in passes.items() if seen.view is not None},
        )

    def note(self, changes: Changes, _when: When) -> None:
        """Remember which pools have changed, of those that anybody has asked about."""
        for pool in changes.pools:
            if pool in self._passes or pool in self._under_way:
                self._changed.add(pool)

    async def _pass(self, pool: str) -> _Seen:
        loop = asyncio.get_running_loop()
        known = self._passes.get(pool)
        is_short = known is None or len(known[1].read.places) <= SHORT
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
            one = _seen(pool, await self._engine.read_aside(pass_load(pool)))
        finally:
            if self._under_way.get(pool) is mine:  # a later one may be done already
                del self._under_way[pool]
        kept = self._passes.get(pool)
        if kept is None or kept[0] < at:
            self._keep(pool, at, one)
        return one

    def _keep(self, pool: str, at: float, one: _Seen) -> None:
        if len(self._passes) >= POOLS_MAX:
            self._passes.clear()
            self._changed &= self._under_way.keys()
        self._passes[pool] = (at, one)


def _seen(pool: str, one: Pass) -> _Seen:
    found = one.facts.pools.get(pool)
    return _Seen(one, None if found is None else line.view_of(one.facts, found, one.evidence))


def _place(one: Pass, ticket: Lease, pool: str) -> Place:
    """Return a ticket's place; who came after the pass is behind all that were in it."""
    units = sum(need.units for need in ticket.needs if need.pool == pool)
    return one.places.get(ticket.id, Place(one.last.rank + 1, one.last.units + units))
