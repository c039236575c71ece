"""Retries tickets that also need capacity in the ledger when the ledger has changed.

It also scans the lines in which a batch could not try all tickets: after many claims, or in other
pools of a booking that was given back.
"""

import asyncio
import logging

from moorage.core.admission.facts import Changes
from moorage.core.ids import LeaseId
from moorage.core.limits import PAGE_MAX
from moorage.core.service_time import When
from moorage.service.admission.lease_cases import Sweep
from moorage.service.admission.queries import AdmissionQueries
from moorage.service.admission.sweeps import FaultyError, swept
from moorage.service.background import Loop
from moorage.service.batch.transactor import Transactor
from moorage.service.feed.bell import Bell

GATHER_SECONDS = 0.05
"""How long to wait after a change of the ledger, so that one attempt covers several changes."""

MORE_SECONDS = 0.005
"""Pause for other work before the rest of a long line is tried."""

RETRY_SECONDS = 1.0

log = logging.getLogger("moorage.claimants")


class CapacityRetry:
    """The waiting tickets with a claim in the ledger. Call `note` with every change."""

    def __init__(self, transactor: Transactor, queries: AdmissionQueries, bell: Bell) -> None:
        self._transactor = transactor
        self._queries = queries
        self._bell = bell
        self._tickets: dict[LeaseId, frozenset[str]] = {}
        """The pools that each ticket needs."""
        self._settled: set[LeaseId] | None = None
        """Leases that changed since `_load` began to read; None: it is not reading."""
        self._loaded = False
        self._unfinished: set[str] = set()
        """Pools in whose lines a batch could not try all tickets."""
        self._more = asyncio.Event()
        """Set if a batch could not try all tickets, or if they must be loaded again."""
        self._loop = Loop(log, "retrying the tickets that wait for capacity failed", RETRY_SECONDS)

    def start(self) -> None:
        """Load the waiting tickets and start the loop that retries them."""
        self._loop.start(self._step)

    async def stop(self) -> None:
        """Stop the loop."""
        await self._loop.stop()

    def reload(self) -> None:
        """Load the waiting tickets again and retry them, because changes were missed."""
        self._loaded = False
        self._more.set()

    def note(self, changes: Changes, _when: When) -> None:
        """Keep the set of tickets up to date."""
        for key, lease in changes.leases.items():
            if self._settled is not None:
                self._settled.add(key)
            if lease is not None and lease.allocations is not None and lease.state == "waiting":
                self._tickets[key] = frozenset(need.pool for need in lease.needs)
            else:
                self._tickets.pop(key, None)
        if changes.unfinished:
            self._unfinished |= changes.unfinished
            self._more.set()

    async def _step(self) -> float | None:
        if self._bell.closed:
            return None
        ring = self._bell.listen()
        self._more.clear()
        try:
            if not self._loaded:
                self._loaded = True
                await self._load()
            await self._try()
        except Exception:  # the database may be unavailable
            self._loaded = False
            raise
        await self._woken(ring)
        return MORE_SECONDS if self._more.is_set() else GATHER_SECONDS

    async def _woken(self, ring: asyncio.Event) -> None:
        """Return when the ledger has changed, or when there are more tickets to try."""
        waits = [asyncio.ensure_future(one.wait()) for one in (ring, self._more)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waits:
                one.cancel()

    async def _try(self) -> None:
        """Sweep all pools of the tickets; a faulty pool is logged and skipped. Raises `Error`."""
        unfinished, self._unfinished = self._unfinished, set()
        pools = frozenset(unfinished).union(*self._tickets.values())

        async def parts() -> list[tuple[str, Sweep]]:
            return [(pool, Sweep(pools=frozenset({pool}))) for pool in sorted(pools)]

        try:
            if pools:
                await swept(self._transactor, Sweep(pools=pools), parts)
        except FaultyError as faulty:
            log.error("%s", faulty)
        except BaseException:
            self._unfinished |= unfinished
            raise

    async def _load(self) -> None:
        """Load the waiting tickets. Those that change meanwhile are up to date through `note`."""
        self._tickets.clear()
        self._settled = set()
        after: tuple[int, str] | None = (0, "")
        while after is not None:
            page = await self._queries.tickets(after, PAGE_MAX)
            for one in page:
                if one.claims is None:
                    log.error("cannot read ticket %s; run `moorage db check`", one.id)
                elif one.claims and one.id not in self._settled:
                    self._tickets[one.id] = one.pools
            after = (page[-1].arrival, page[-1].id) if len(page) == PAGE_MAX else None
        self._settled = None
