"""Positions of tickets: one pass over a pool's line serves all requests within a second."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from msgspec import structs

from moorage.core.admission.facts import Changes, Facts
from moorage.core.admission.forecast import why
from moorage.core.admission.forecast.eta import Floor, Queue, queue_of
from moorage.core.admission.forecast.overstays import Overstay, overstay_before
from moorage.core.admission.forecast.why import Standing, View
from moorage.core.admission.model import Lease
from moorage.core.admission.units import free_units, is_gang
from moorage.core.service_time import Moment, Timeline, When
from moorage.store.admission.line_pass import LinePass, pass_load
from moorage.store.api import Engine

PASS_SECONDS = 1.0
"""How old the pass behind an answer may be, unless it took longer than half of this."""

SHORT = 256
"""Lines of up to this many tickets are read again after every change of the pool.

The places in longer ones are counted in a thread: that would hold the loop.
"""

POOLS_MAX = 1_000
"""Pools whose last pass is kept, the most recently read ones."""

GANGS_MAX = 32
"""The first tickets of a line that also need other pools, and whose other pools are considered."""

HELD_CODES = ("limit", "over", "stopping")
"""Why a ticket waits that waits for units which others hold."""

OTHERS_MAX = 8
"""Other pools that are considered for them."""


@dataclass(slots=True)
class _Seen:
    """A pass and the data derived from it for all requests; without a view the pool is gone."""

    read: LinePass
    queue: Queue
    plain: View | None
    """The view without regard to other pools that tickets need."""
    view: View | None = None
    """The view with regard to other pools; None: not needed yet."""


class _Kept(NamedTuple):
    """A pass, the loop's time at which it began, and until when it may be used."""

    began: float
    until: float
    seen: _Seen


Known = dict[str, _Seen]
"""The passes over pools behind one answer."""


class _Passes:
    """The last passes over the lines of pools, shared by concurrent requests."""

    def __init__(
        self, engine: Engine, when: Callable[[Timeline], When], tickets: int | None
    ) -> None:
        """Create it; `tickets`: how many tickets of each line are read; None: all."""
        self._engine = engine
        self._when = when
        self._tickets = tickets
        self._passes: dict[str, _Kept] = {}
        """Passes by pool; the newest last."""
        self._changed: set[str] = set()
        """Pools that have changed since their pass."""
        self._under_way: dict[str, asyncio.Task[_Seen]] = {}

    def note(self, pools: Iterable[str]) -> None:
        """Mark pools as changed if a pass over them is kept or in progress."""
        for pool in pools:
            if pool in self._passes or pool in self._under_way:
                self._changed.add(pool)

    async def of(self, pool: str) -> _Seen:
        """Return a pass that is recent enough."""
        loop = asyncio.get_running_loop()
        known = self._passes.get(pool)
        is_short = known is None or len(known.seen.queue.places) <= SHORT
        stale = is_short and pool in self._changed
        task = self._under_way.get(pool)
        # Of a short line, a pass under way is newer than the kept one, which lacks some change.
        renewed = stale or (is_short and task is not None)
        if known is not None and not renewed and loop.time() < known.until:
            return known.seen
        # One pass at a time over a long line: otherwise passes would pile up on a busy pool.
        if task is None or stale:
            self._changed.discard(pool)
            task = self._under_way[pool] = loop.create_task(self._read(pool))
        return await asyncio.shield(task)

    async def _read(self, pool: str) -> _Seen:
        """Read a pool's line; keep the pass, unless one that began later is kept already."""
        loop = asyncio.get_running_loop()
        began, mine = loop.time(), asyncio.current_task()
        try:
            read = await self._engine.read_aside(pass_load(pool, self._tickets))
            moment = self._when(read.facts.timeline).moment
            if len(read.waiters) > SHORT:
                seen = await asyncio.to_thread(_seen, pool, read, moment)
            else:
                seen = _seen(pool, read, moment)
        finally:
            if self._under_way.get(pool) is mine:  # a later one may have replaced it
                del self._under_way[pool]
        kept = self._passes.get(pool)
        if kept is None or kept.began < began:
            # Passes over one line take at most half of the time, however long each takes.
            lasts = max(PASS_SECONDS, 2 * (loop.time() - began))
            self._keep(pool, _Kept(began, began + lasts, seen))
        return seen

    def _keep(self, pool: str, one: _Kept) -> None:
        self._passes.pop(pool, None)
        self._passes[pool] = one
        while len(self._passes) > POOLS_MAX:
            oldest = next(iter(self._passes))
            del self._passes[oldest]
            self._changed.discard(oldest)


def _seen(pool: str, read: LinePass, moment: Moment) -> _Seen:
    found = read.facts.pools.get(pool)
    if found is None:
        return _Seen(read, Queue(), None)
    queue = queue_of(read.facts, moment, found, read.waiters)
    evidence = structs.replace(read.evidence, line=queue.line)
    return _Seen(read, queue, why.view_of(read.facts, found, evidence))


class Positions:
    """Positions of tickets, and the first ticket of a line. Raises StoreError."""

    def __init__(self, engine: Engine, when: Callable[[Timeline], When]) -> None:
        self._when = when
        self._lines = _Passes(engine, when, None)
        self._heads = _Passes(engine, when, 1)

    async def of(
        self, ticket: Lease, *, asking: bool = False, known: Known | None = None
    ) -> Standing | None:
        """Return a ticket's standing; None if one of its pools is gone.

        Args:
            ticket: that waits.
            asking: as in `why`.
            known: the passes behind the same answer, for all its tickets; missing ones are added. A
                pass over a long line may take longer than another one may be old.
        """
        known = {} if known is None else known
        pools = {need.pool for need in ticket.needs}
        for name in pools - known.keys():
            known[name] = await self._lines.of(name)
        passes = {need.pool: known[need.pool] for need in ticket.needs}
        return await self._standing(ticket, passes, asking=asking)

    async def first(self, pool: str) -> tuple[Lease, Standing] | None:
        """Return the first ticket of a pool's line and its standing; None if the line is empty.

        This does not read the rest of the line, but the whole lines of other pools that it needs.
        """
        here = await self._heads.of(pool)
        ticket = here.read.first
        if ticket is None:
            return None
        others = [need.pool for need in ticket.needs if need.pool != pool]
        passes = {pool: here} | {name: await self._lines.of(name) for name in others}
        standing = await self._standing(ticket, passes)
        return None if standing is None else (ticket, standing)

    async def overstay(self, pool: str, first: Lease, standing: Standing) -> Overstay | None:
        """Return the lease that a pool's line waits behind for too long, as of a second ago.

        There is none if the pool is paused, or the first ticket waits for something other than
        units of this pool although some are free.
        """
        here = await self._heads.of(pool)
        facts, evidence = here.read.facts, here.read.evidence
        known = facts.pools.get(pool)
        if known is None or known.paused:
            return None
        at = self._when(facts.timeline).moment.at
        free = any(units > 0 for units in free_units(facts, known, at).values())
        if free and (standing.code not in HELD_CODES or is_gang(first.needs)):
            return None
        return overstay_before(first, facts, known, evidence, at)

    async def _standing(
        self, ticket: Lease, passes: dict[str, _Seen], *, asking: bool = False
    ) -> Standing | None:
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
            asking=asking,
        )

    def note(self, changes: Changes, _when: When) -> None:
        """Mark the passes over changed pools as stale.

        So are those over lines with moved tickets, and over pools with leases that change hands or
        are asked to stop: these pools do not change themselves.
        """
        pools = {*changes.pools}
        for lease in changes.leases.values():
            if lease is None:
                continue
            if lease.priority_asked is not None or lease.taken_from or lease.preempted_by:
                pools.update(need.pool for need in lease.needs)
        self._lines.note(pools)
        self._heads.note(pools)

    async def _view(self, pool: str, seen: _Seen) -> View | None:
        """Return the view for a pool's tickets, including waits of its gangs in other pools."""
        if seen.view is None and seen.plain is not None:
            floors = await self._floors(pool, seen)
            if not floors:
                seen.view = seen.plain
            else:
                facts, evidence = seen.read.facts, seen.plain.evidence
                seen.view = why.view_of(facts, facts.pools[pool], evidence, floors)
        return seen.view

    async def _floors(self, pool: str, seen: _Seen) -> dict[int, Floor]:
        """Return the earliest starts that other pools permit for this line's gangs, by index.

        Each other pool is considered separately: waits of its own gangs are not followed.
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
        facts.bookings.update(one.bookings)
        facts.calls.update(one.calls)
        facts.holding.update(one.holding)
    return facts
