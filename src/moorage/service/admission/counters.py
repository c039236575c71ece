"""Counters of admission for metrics: current pools, and what this process has committed."""

from collections import Counter

from moorage.core.admission.facts import Changes
from moorage.core.admission.model import Lease, Pool
from moorage.core.admission.units import units_by_pool
from moorage.core.clock import SECOND, Instant
from moorage.core.service_time import When
from moorage.service.admission.views import Ages
from moorage.service.histogram import Histogram

WAIT_SECONDS = (1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3_600.0, 14_400.0, 86_400.0)
"""Upper bounds of the buckets for waits, from the request to the grant."""

HELD_SECONDS = (10.0, 60.0, 300.0, 900.0, 1_800.0, 3_600.0, 14_400.0, 86_400.0, 604_800.0)
"""Upper bounds of the buckets for leases, from the grant to the end."""


class PoolCounters:
    """The last known state of the pools, and what this process has committed since it started."""

    def __init__(self) -> None:
        self.pools: dict[str, Pool] = {}
        self.unheard: dict[str, int] = {}
        """Leases that occupy units although not renewed in time, by pool, as of the last count."""
        self.oldest: dict[str, Ages] = {}
        """By pool, as of the last look."""
        self.granted: Counter[str] = Counter()
        """Granted leases by pool."""
        self.ended: Counter[tuple[str, str]] = Counter()
        """Ended leases and tickets by pool and cause."""
        self.preempted: Counter[tuple[str, str, str]] = Counter()
        """Leases that were asked to stop for a ticket, by pool, pool of the ticket, and rule."""
        self.waited = Histogram(WAIT_SECONDS)
        """Of granted leases, by pool."""
        self.held = Histogram(HELD_SECONDS)
        """Of leases that have ended, by pool."""

    def note(self, changes: Changes, _when: When) -> None:
        """Update the pools; the counters of a deleted pool are dropped."""
        for name, pool in changes.pools.items():
            if pool is None:
                self._forget(name)
            else:
                self.pools[name] = pool

    def count(self, changes: Changes, when: When) -> None:
        """Count what this process has committed."""
        for lease in changes.leases.values():
            if lease is None:
                continue
            if lease.ended_at == when.moment.at:  # not one that had ended before
                self._end(lease)
            elif lease.token is not None and lease.granted_at == when.moment.at:
                self._grant(lease, lease.granted_at)
        for key, asked in changes.stopping.items():
            lease = changes.leases.get(key)
            for pool in () if lease is None else units_by_pool(lease.needs):
                self.preempted[pool, asked.pool, asked.rule] += 1

    def _grant(self, lease: Lease, at: Instant) -> None:
        for pool in units_by_pool(lease.needs):
            self.granted[pool] += 1
            self.waited.add(pool, (at - lease.asked_at) / SECOND)

    def _end(self, lease: Lease) -> None:
        for pool in units_by_pool(lease.needs):
            self.ended[pool, lease.cause or ""] += 1
            if lease.granted_at is not None and lease.ended_at is not None:
                self.held.add(pool, (lease.ended_at - lease.granted_at) / SECOND)

    def _forget(self, name: str) -> None:
        self.pools.pop(name, None)
        self.granted.pop(name, None)
        self.waited.drop(name)
        self.held.drop(name)
        for asked in [asked for asked in self.preempted if name in asked[:2]]:
            del self.preempted[asked]
        for one in [one for one in self.ended if one[0] == name]:
            del self.ended[one]
