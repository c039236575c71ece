"""Which leases a list has, beyond what its rows are searched by."""

from msgspec import Struct

from moorage.core.admission.model import Lease, since_of
from moorage.core.clock import Instant


class LeaseFilter(Struct, frozen=True):
    """Leases with all of these labels that have been in their state for long enough."""

    labels: dict[str, str] = {}
    older: int | None = None
    """Microseconds; None: for any time."""

    def __bool__(self) -> bool:
        return bool(self.labels) or self.older is not None

    def admits(self, lease: Lease, at: Instant) -> bool:
        """Is a lease one of these at a service time?"""
        if self.older is not None and at - since_of(lease) < self.older:
            return False
        return self.labels.items() <= lease.labels.items()


ALL = LeaseFilter()
