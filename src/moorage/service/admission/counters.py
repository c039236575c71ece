"""What is counted of admission, for metrics: the pools as they are, and what was done here."""

from collections import Counter

from moorage.core.admission.facts import Changes
from moorage.core.admission.model import Pool
from moorage.core.service_time import When


class Tally:
    """The pools as last heard of, and what this process has committed since it started."""

    def __init__(self) -> None:
        self.pools: dict[str, Pool] = {}
        self.unheard: dict[str, int] = {}
        """Leases that occupy though nobody has renewed them, by pool, when last looked at."""
        self.granted: Counter[str] = Counter()
        """Leases, by pool."""
        self.ended: Counter[tuple[str, str]] = Counter()
        """Leases and tickets, by pool and cause."""

    def note(self, changes: Changes, _when: When) -> None:
        """Follow the pools; of one that is gone nothing is told any more."""
        for name, pool in changes.pools.items():
            if pool is None:
                self._forget(name)
            else:
                self.pools[name] = pool

    def count(self, changes: Changes, when: When) -> None:
        """Count what was committed here."""
        for lease in changes.leases.values():
            if lease is None:
                continue
            for need in lease.needs:
                if lease.ended_at == when.moment.at:  # else it had ended, and is told of again
                    self.ended[need.pool, lease.cause or ""] += 1
                elif lease.token is not None and lease.granted_at == when.moment.at:
                    self.granted[need.pool] += 1

    def _forget(self, name: str) -> None:
        self.pools.pop(name, None)
        self.granted.pop(name, None)
        for one in [one for one in self.ended if one[0] == name]:
            del self.ended[one]
