"""Tickets that wait for capacity in the ledger: tried again when the ledger has changed."""

import asyncio
import logging

from moorage.core.admission.facts import Changes
from moorage.core.ids import LeaseId
from moorage.core.limits import PAGE_MAX
from moorage.core.service_time import When
from moorage.service.admission.lease_cases import Sweep
from moorage.service.admission.queries import Lookout
from moorage.service.admission.sweeps import FaultyError, swept
from moorage.service.batch.transactor import Transactor
from moorage.service.feed.bell import Bell

GATHER_SECONDS = 0.05
"""How long to wait after a change of the ledger, so that one trial answers for many."""

MORE_SECONDS = 0.005
"""How long to let others have their turn before the rest of a long line is tried."""

RETRY_SECONDS = 1.0

log = logging.getLogger("moorage.claimants")


class Claimants:
    """Which tickets want to hold something in the ledger, too. Call `note` with what changes."""

    def __init__(self, transactor: Transactor, lookout: Lookout, bell: Bell) -> None:
        self._transactor = transactor
        self._lookout = lookout
        self._bell = bell
        self._tickets: dict[LeaseId, frozenset[str]] = {}
        """The pools that each of them needs."""
        self._settled: set[LeaseId] | None = None
        """Who has changed since `_load` has begun to read; None: it does not read now."""
        self._loaded = False
        self._more = asyncio.Event()
        """Not everybody could be tried at once."""
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to try again by itself, after a look at who waits already."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """End the loop."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def reload(self) -> None:
        """Look anew who waits, before the next trial: changes were missed."""
        self._loaded = False

    def note(self, changes: Changes, _when: When) -> None:
        """Follow the tickets: who waits with a wish for the ledger, and who does not any more."""
        for key, lease in changes.leases.items():
            if self._settled is not None:
                self._settled.add(key)
            if lease is not None and lease.allocations is not None and lease.state == "waiting":
                self._tickets[key] = frozenset(need.pool for need in lease.needs)
            else:
                self._tickets.pop(key, None)
        if changes.unfinished:
            self._more.set()

    async def _run(self) -> None:
        while not self._bell.closed:
            ring = self._bell.listen()
            self._more.clear()
            try:
                if not self._loaded:
                    self._loaded = True
                    await self._load()
                await self._try()
            except Exception:  # the database may be away; it is tried again
                self._loaded = False
                log.exception("trying those who wait for capacity failed")
                await asyncio.sleep(RETRY_SECONDS)
                continue
            await self._woken(ring)
            await asyncio.sleep(MORE_SECONDS if self._more.is_set() else GATHER_SECONDS)

    async def _woken(self, ring: asyncio.Event) -> None:
        """Return when the ledger has changed, or when there is more to try as it is."""
        waits = [asyncio.ensure_future(one.wait()) for one in (ring, self._more)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waits:
                one.cancel()

    async def _try(self) -> None:
        """Try all their pools; one that is faulty waits for the next trial. Raises `Error`."""
        pools = frozenset().union(*self._tickets.values())

        async def parts() -> list[tuple[str, Sweep]]:
            return [(pool, Sweep(pools=frozenset({pool}))) for pool in sorted(pools)]

        try:
            if pools:
                await swept(self._transactor, Sweep(pools=pools), parts)
        except FaultyError as faulty:
            log.error("%s", faulty)

    async def _load(self) -> None:
        """Look who waits. Whoever changes meanwhile is known already, from `note`."""
        self._tickets.clear()
        self._settled = set()
        after: tuple[int, str] | None = (0, "")
        while after is not None:
            page = await self._lookout.tickets(after, PAGE_MAX)
            for one in page:
                if one.claims is None:
                    log.error("ticket %s cannot be read; see `moorage db check`", one.id)
                elif one.claims and one.id not in self._settled:
                    self._tickets[one.id] = one.pools
            after = (page[-1].arrival, page[-1].id) if len(page) == PAGE_MAX else None
        self._settled = None
