"""When hosts began and ended their work, as another client of the cluster saw it."""

from time import monotonic

from moorage.integrations.metal3.hosts import OWN, PAUSED
from tests.support.bmo_double.hosts import annotations, state
from tests.support.kubernetes_client import Object


class Watched:
    """Takes note of each version of a host that a watch shows. `starts` and `ends` are times."""

    def __init__(self) -> None:
        self._paused: set[str] = set()
        self._ended: set[str] = set()
        self.starts: list[float] = []
        self.ends: list[float] = []

    def look(self, name: str, found: Object) -> None:
        """Take note of a version of a host."""
        now = monotonic()
        if annotations(found).get(PAUSED) == OWN:
            self._paused.add(name)
        elif name in self._paused:
            self._paused.remove(name)
            self.starts.append(now)
        if state(found) == "provisioned" and name not in self._ended:
            self._ended.add(name)
            self.ends.append(now)

    def waits(self, limit: int) -> list[float]:
        """Return the times from each freed unit to the start that used it, the shortest first.

        The first `limit` starts found a free unit; each later one needs one end more.
        """
        return sorted(
            max(0.0, start - end)
            for end, start in zip(self.ends, self.starts[limit:], strict=False)
        )
