"""The cases of leases that change hands, and of those that are kept for inspection.

Handing over always leaves an audit row, because the next question is who had it when.
"""

import hashlib
from dataclasses import dataclass, field

from moorage.core.admission import handing_over, keeping
from moorage.core.admission.facts import Answer
from moorage.core.admission.facts import Keys as AdmissionKeys
from moorage.core.admission.handing_over import Acceptance
from moorage.core.admission.requests import Proof
from moorage.core.clock import SECOND, Instant
from moorage.core.errors import Code, Error
from moorage.core.ids import LeaseId
from moorage.core.service_time import When
from moorage.service.access.roles import standing
from moorage.service.admission.lease_cases import LeaseCase
from moorage.service.audit_entries import Actor, audit_entry
from moorage.service.batch.world import Changes, Keys, World
from moorage.service.ids import lease_id_new
from moorage.wire.labels import DESCRIBING, HOLDER


@dataclass(slots=True)
class HandingCase(LeaseCase):
    """A step of handing a lease over; `actor` takes it."""

    actor: Actor

    def made(self, action: str, to: str | None, answer: Answer, when: When) -> Changes:
        """Return the changes of a decision, and set its audit row unless nothing changes."""
        changes, _ = answer
        self.rows = []
        if changes.leases:
            after = {"to": to}
            self.rows = [audit_entry(when.wall, self.actor, action, self.lease, after=after)]
        return Changes(admission=changes)


@dataclass(slots=True)
class LeaseOffer(HandingCase):
    """Offer a lease to another owner for `lasts` microseconds."""

    proof: Proof
    to: str
    lasts: int

    def decide(self, world: World, when: When) -> Changes:
        made = handing_over.offer(
            world.admission, when.moment, self.lease, self.proof, self.to, self.lasts
        )
        return self.made("lease.offer", self.to, made, when)


@dataclass(slots=True)
class LeaseOfferWithdraw(HandingCase):
    """Take an offer back."""

    proof: Proof

    def decide(self, world: World, when: When) -> Changes:
        made = handing_over.withdraw(world.admission, when.moment, self.lease, self.proof)
        return self.made("lease.withdraw", None, made, when)


@dataclass(slots=True)
class LeaseDecline(HandingCase):
    """Refuse what is offered to an owner."""

    owner: str

    def decide(self, world: World, when: When) -> Changes:
        made = handing_over.decline(world.admission, when.moment, self.lease, self.owner)
        return self.made("lease.decline", self.owner, made, when)


@dataclass(slots=True)
class LeaseAccept(HandingCase):
    """Take over what is offered to an owner; the answer is the new lease, with this key."""

    owner: str
    key: str
    labels: dict[str, str]
    fresh: LeaseId = field(default_factory=lease_id_new)
    old: LeaseId = field(init=False)

    def __post_init__(self) -> None:
        self.old = self.lease

    def keys(self) -> Keys:
        asked = {(self.owner, self.key)}
        return Keys(admission=AdmissionKeys(leases={self.old}, asked=asked))

    def decide(self, world: World, when: When) -> Changes:
        roles = standing(self.actor.role)
        digest = acceptance_digest(self.old)
        given = world.admission.leases.get(self.old)
        labels = kept_labels({} if given is None else given.labels) | self.labels
        how = Acceptance(self.owner, self.key, self.fresh, digest, labels, roles)
        made = handing_over.accept(world.admission, when.moment, when.wall, self.old, how)
        self.lease = self.old
        changes = self.made("lease.accept", self.owner, made, when)
        self.lease = made[1]
        return changes


def acceptance_digest(lease: LeaseId) -> str:
    """Return the digest of accepting a lease: that of no request, so a key stands for one."""
    return hashlib.sha256(f"accept {lease}".encode()).hexdigest()


def kept_labels(labels: dict[str, str]) -> dict[str, str]:
    """Return the labels that a lease keeps when it changes hands: those that name no holder."""
    return {
        name: text for name, text in labels.items() if name not in DESCRIBING and name != HOLDER
    }


@dataclass(slots=True)
class LeaseKeep(LeaseCase):
    """Keep a lease for inspection: until a wall-clock time, or for `lasts` microseconds.

    `at_most`: for less if its pools permit less. `reason` is for people.
    """

    proof: Proof
    until: Instant | None
    lasts: int | None
    reason: str
    at_most: bool = False

    def __post_init__(self) -> None:
        if self.until is None and self.lasts is None:
            raise Error(Code.INVALID, "Give `until` or `lasts`: a kept lease needs an end.")

    def decide(self, world: World, when: When) -> Changes:
        facts = world.admission
        wanted = self.lasts
        if self.until is not None:
            wanted = self.until - when.wall
        assert wanted is not None
        before = facts.leases.get(self.lease)
        changes, self.lease = keeping.keep(
            facts,
            when.moment,
            self.lease,
            self.proof,
            wanted,
            self.reason,
            at_most=self.at_most,
        )
        shown = {"seconds": wanted / SECOND, "reason": self.reason}
        self.leave("lease.keep", before, changes, when, **shown)
        return Changes(admission=changes)
