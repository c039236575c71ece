"""The periodic work of admission: end what is due, grant what time permits, write `alive_at`.

Every process does this. A sweep that finds nothing due changes nothing, so it does not matter which
process sweeps, or how often. The next time is read from the database; commits of this process can
only make it earlier.
"""

import asyncio
import logging
from contextlib import suppress
from functools import partial

from moorage.core.admission.facts import Changes
from moorage.core.admission.model import due_of
from moorage.core.clock import SECOND, Instant
from moorage.core.service_time import BEAT, When
from moorage.service.admission.lease_cases import Sweep
from moorage.service.admission.queries import AdmissionQueries, NextDue
from moorage.service.admission.sweeps import FaultyError, swept
from moorage.service.background import Loop
from moorage.service.batch.transactor import Transactor

SHARED_SECONDS = 0.5
"""How often the rows are read on a shared database: another process may have stopped midway."""

GRAIN_SECONDS = 0.02
"""The minimum time between two sweeps; whatever becomes due in between is done together."""

RETRY_SECONDS = 1.0

log = logging.getLogger("moorage.sweeper")


class Sweeper:
    """Sweeps when something is due. Call `note` with every commit."""

    def __init__(self, transactor: Transactor, queries: AdmissionQueries, *, shared: bool) -> None:
        self._transactor = transactor
        self._queries = queries
        self._pause = SHARED_SECONDS if shared else BEAT / SECOND
        self._due: Instant | None = None
        """The earliest service time at which something may be due."""
        self._skew: int | None = None
        """By which the times of bookings were last mapped to service time; None: not yet."""
        self._sooner = asyncio.Event()
        self._loop = Loop(log, "a sweep failed; it will be repeated", RETRY_SECONDS)

    def start(self) -> None:
        """Start the loop that sweeps."""
        self._loop.start(self._step, self._idle)

    async def stop(self) -> None:
        """Stop the loop."""
        await self._loop.stop()

    def note(self, changes: Changes, when: When) -> None:
        """Sweep sooner, if a committed change is due sooner."""
        dues = [due_of(lease) for lease in changes.leases.values() if lease is not None]
        downtime = when.moment.at - when.moment.alive
        heard = (until for until in changes.heard.values() if until is not None)
        dues += [Instant(until + downtime) for until in heard]
        dues += [pool.wake_at for pool in changes.pools.values() if pool is not None]
        soonest = min((due for due in dues if due is not None), default=None)
        if soonest is not None and (self._due is None or soonest < self._due):
            self._due = soonest
            self._sooner.set()

    async def sweep(self) -> bool:
        """End what is due and grant what time permits; return whether more is due now."""
        return _is_over(await self._swept())

    async def _swept(self) -> NextDue:
        """Sweep if something is due; return what is due afterwards."""
        found = await self._queries.next_due()
        if found.skew != self._skew:
            await self._map_bookings()
            self._skew = found.skew
            found = await self._queries.next_due()
        was_over = _is_over(found)
        if found.late or was_over:
            before, at = found.due, found.when.moment.at
            moved = await swept(self._transactor, Sweep(at), partial(self._parts, at))
            found = await self._queries.next_due()
            if was_over and _is_over(found) and found.due == before and not moved:
                raise FaultyError([f"something due at {before}"])
        self._due = found.due
        return found

    async def _map_bookings(self) -> None:
        """Look again when bookings permit grants: the wall clock has jumped, or may have."""
        booked = await self._queries.booked_pools()
        if booked:
            await self._transactor.submit(Sweep(calendars=frozenset(booked)))

    async def _parts(self, at: Instant) -> list[tuple[str, Sweep]]:
        """Return one sweep for each lease and each pool due at a service time."""
        leases, pools = await self._queries.all_due(at)
        parts: list[tuple[str, Sweep]] = []
        parts += [(lease, Sweep(leases=frozenset({lease}))) for lease in leases]
        parts += [(pool, Sweep(pools=frozenset({pool}))) for pool in pools]
        return parts

    async def _step(self) -> float:
        self._sooner.clear()
        try:
            return self._pause_after(await self._swept())
        except FaultyError as faulty:
            log.error("%s", faulty)
            return RETRY_SECONDS

    async def _idle(self, seconds: float) -> None:
        """Wait, but only for `GRAIN_SECONDS` if something is due sooner."""
        await asyncio.sleep(GRAIN_SECONDS)
        if seconds > GRAIN_SECONDS and not self._sooner.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds - GRAIN_SECONDS):
                    await self._sooner.wait()

    def _pause_after(self, found: NextDue) -> float:
        """Return the seconds until the next sweep; 0 if something is due already."""
        if found.due is None:
            return self._pause
        return min(self._pause, max(0.0, (found.due - found.when.moment.at) / SECOND))


def _is_over(found: NextDue) -> bool:
    return found.due is not None and found.due <= found.when.moment.at
