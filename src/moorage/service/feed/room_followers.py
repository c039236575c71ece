"""The followers of each room besides the ledger, which the index follows."""

from dataclasses import dataclass, field
from functools import partial
from typing import Any

from moorage.core.admission.facts import Changes as AdmissionChanges
from moorage.core.fleet.facts import Changes as FleetChanges
from moorage.core.service_time import When
from moorage.service.feed.followers import Followers
from moorage.store.admission import changes as admission_changes
from moorage.store.changelog import Batch
from moorage.store.fleet import changes as fleet_changes


@dataclass(slots=True)
class RoomFollowers:
    """The followers of pools and leases, and those of agents and groups."""

    admission: Followers[AdmissionChanges] = field(
        default_factory=partial(
            Followers,
            admission_changes.FOLLOWED_KINDS,
            admission_changes.changes_read,
            AdmissionChanges,
        )
    )
    fleet: Followers[FleetChanges] = field(
        default_factory=partial(
            Followers, fleet_changes.FOLLOWED_KINDS, fleet_changes.changes_read, FleetChanges
        )
    )

    @property
    def all(self) -> tuple[Followers[Any], ...]:
        """The followers by room."""
        return self.admission, self.fleet

    def committed(
        self,
        admission: AdmissionChanges | None,
        fleet: FleetChanges | None,
        when: When,
        *,
        was_read: bool,
    ) -> None:
        """Notify the followers of a commit of this process.

        `was_read`: its change rows were read already, and may be followed by newer changes; then
        only what has no change rows is news.
        """
        if admission is not None:
            self.admission.notify(admission.unlogged() if was_read else admission, when)
        if fleet and not was_read:
            self.fleet.notify(fleet, when)

    def report(self, batch: Batch, when: When) -> None:
        """Notify the followers of a peer's batch."""
        for followers in self.all:
            followers.report(batch.others, batch.revision, when)

    def missed(self) -> None:
        """Report the whole state of each room, because commits were not reported."""
        for followers in self.all:
            followers.missed()
