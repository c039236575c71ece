"""What admission does by itself: end what is over, grant when time alone permits it, be alive.

Every process does it; a sweep that finds nothing due changes nothing, so nothing rests on who does
it or how often. When to look next is asked of the rows and moved forward by what is committed here.
"""

import asyncio
import logging
from functools import partial

from moorage.core.admission.facts import Changes
from moorage.core.admission.model import due_of
from moorage.core.clock import Instant
from moorage.core.service_time import When
from moorage.service.admission.lease_cases import Sweep
from moorage.service.admission.queries import Lookout, NextDue
from moorage.service.admission.sweeps import FaultyError, swept
from moorage.service.batch.transactor import Transactor

BEAT_SECONDS = 5.0
"""How often a process says that it is alive, while there is anything that rests on it."""

SHARED_SECONDS = 0.5
"""How often the rows are asked on a shared database: others may have gone in the middle."""

GRAIN_SECONDS = 0.02
"""Time between two sweeps at the least: what is due in between is done together."""

RETRY_SECONDS = 1.0

log = logging.getLogger("moorage.sweeper")


class Sweeper:
    """Sweeps when something is due. Call `note` with what was committed."""

    def __init__(self, transactor: Transactor, lookout: Lookout, *, shared: bool) -> None:
        self._transactor = transactor
        self._lookout = lookout
        self._pause = SHARED_SECONDS if shared else BEAT_SECONDS
        self._due: Instant | None = None
        """The earliest time, in service time, at which something may be due."""
        self._sooner = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to sweep by itself."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """End the loop."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def note(self, changes: Changes, when: When) -> None:
        """Look sooner, if what was committed here is due sooner."""
        dues = [due_of(lease) for lease in changes.leases.values() if lease is not None]
        downtime = when.moment.at - when.moment.alive
        dues += [Instant(heard_until + downtime) for heard_until in changes.heard.values()]
        dues += [pool.wake_at for pool in changes.pools.values() if pool is not None]
        soonest = min((due for due in dues if due is not None), default=None)
        if soonest is not None and (self._due is None or soonest < self._due):
            self._due = soonest
            self._sooner.set()

    async def sweep(self) -> bool:
        """End what is over and grant what time permits; return whether there is more due now."""
        return _is_over(await self._swept())

    async def _swept(self) -> NextDue:
        """Sweep if something is due; return what is due then."""
        found = await self._lookout.next_due()
        if found.late or _is_over(found):
            before, at = found.due, found.when.moment.at
            moved = await swept(self._transactor, Sweep(at), partial(self._parts, at))
            found = await self._lookout.next_due()
            if _is_over(found) and found.due == before and not moved:
                raise FaultyError([f"something due at {before}"])
        self._due = found.due
        return found

    async def _parts(self, at: Instant) -> list[tuple[str, Sweep]]:
        """Return what is due at a service time, each by itself."""
        leases, pools = await self._lookout.all_due(at)
        parts: list[tuple[str, Sweep]] = []
        parts += [(lease, Sweep(leases=frozenset({lease}))) for lease in leases]
        parts += [(pool, Sweep(pools=frozenset({pool}))) for pool in pools]
        return parts

    async def _run(self) -> None:
        while True:
            self._sooner.clear()
            try:
                pause = self._pause_after(await self._swept())
            except FaultyError as faulty:
                log.error("%s", faulty)
                pause = RETRY_SECONDS
            except Exception:  # the database may be away; the requests say so, too
                log.exception("a sweep failed; it is tried again")
                pause = RETRY_SECONDS
            await asyncio.sleep(GRAIN_SECONDS)
            if pause > GRAIN_SECONDS and not self._sooner.is_set():
                try:
                    async with asyncio.timeout(pause - GRAIN_SECONDS):
                        await self._sooner.wait()
                except TimeoutError:
                    continue

    def _pause_after(self, found: NextDue) -> float:
        """Return the seconds until something is due; what is over already waits for nothing."""
        if found.due is None:
            return self._pause
        return min(self._pause, max(0.0, (found.due - found.when.moment.at) / 1e6))


def _is_over(found: NextDue) -> bool:
    return found.due is not None and found.due <= found.when.moment.at
