"""The cases that follow from what connections show: who is gone, and who has read of a grant."""

from dataclasses import dataclass

from moorage.core.admission import expiry, leases
from moorage.core.admission.facts import Changes as AdmissionChanges
from moorage.core.admission.facts import Keys as AdmissionKeys
from moorage.core.ids import LeaseId
from moorage.core.service_time import When
from moorage.service.admission.lease_cases import LeaseCase
from moorage.service.batch.use_case import UseCase
from moorage.service.batch.world import Changes, Keys, World


@dataclass(slots=True)
class TicketsLeft(UseCase[None]):
    """Note that no request waits for these tickets, because the only process was started again."""

    tickets: list[LeaseId]

    def keys(self) -> Keys:
        return Keys(admission=AdmissionKeys(heard=set(self.tickets)))

    def decide(self, world: World, when: When) -> Changes:
        made = AdmissionChanges()
        for ticket in self.tickets:
            made.update(leases.left_at_restart(world.admission, when.moment, ticket))
        return Changes(admission=made)

    def conclude(self, world: World, when: When) -> None:
        """Return nothing."""


@dataclass(slots=True)
class LeasesConfirm(UseCase[None]):
    """Note that the holders of these grants have read of them; some may have ended since."""

    leases: list[LeaseId]

    def keys(self) -> Keys:
        return Keys(admission=AdmissionKeys(heard=set(self.leases)))

    def decide(self, world: World, when: When) -> Changes:
        made, facts = AdmissionChanges(), world.admission
        for lease in self.leases:
            if lease in facts.leases:
                made.update(expiry.confirm(facts, when.moment, lease))
        return Changes(admission=made)

    def conclude(self, world: World, when: When) -> None:
        """Return nothing."""


@dataclass(slots=True)
class LeaseUndelivered(LeaseCase):
    """End a grant that nobody has read of, unless it is confirmed."""

    def decide(self, world: World, when: When) -> Changes:
        facts, moment = world.admission, when.moment
        return Changes(admission=expiry.undelivered(facts, moment, when.wall, self.lease))
