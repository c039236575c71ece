"""Counters of admission for metrics: current pools, and what this process has committed."""

from collections import Counter

from moorage.core.admission.facts import Changes
from moorage.core.admission.model import Pool
from moorage.core.service_time import When


class PoolCounters:
    """The last known state of the pools, and what this process has committed since it started."""

    def __init__(self) -> None:
        self.pools: dict[str, Pool] = {}
        self.unheard: dict[str, int] = {}
        """Leases that occupy units although not renewed in time, by pool, as of the last count."""
        self.granted: Counter[str] = Counter()
        """Granted leases by pool."""
        self.ended: Counter[tuple[str, str]] = Counter()
        """Ended leases and tickets by pool and cause."""

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
            for need in lease.needs:
                if lease.ended_at == when.moment.at:  # not one that had ended before
                    self.ended[need.pool, lease.cause or ""] += 1
                elif lease.token is not None and lease.granted_at == when.moment.at:
                    self.granted[need.pool] += 1

    def _forget(self, name: str) -> None:
        self.pools.pop(name, None)
        self.granted.pop(name, None)
        for one in [one for one in self.ended if one[0] == name]:
            del self.ended[one]
