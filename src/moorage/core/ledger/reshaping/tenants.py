"""Which consumers belong to leases, as admission knows it, and what follows from that.

A lease that ends returns what its consumer holds. So a consumer whose lease has ended must not be
created again: nobody would ever return its units. Whether other consumers still have an owner,
such as an instance of Nova, only the operator knows.
"""

from collections.abc import Collection, Mapping
from enum import StrEnum

from msgspec import Struct

from moorage.core.clock import Instant
from moorage.core.counting import counted
from moorage.core.ids import ConsumerId, LeaseId
from moorage.core.ledger.facts import Facts
from moorage.core.ledger.model import Allocations
from moorage.core.ledger.reshaping.violations import Violation, ViolationCode
from moorage.core.ledger.reshaping.wanted import Owner, Wanted

Leases = Mapping[tuple[ConsumerId, Instant], LeaseId]
"""The granted leases by consumer and the time at which it was created for them."""

NO_LEASES: Leases = {}


class NoteCode(StrEnum):
    """A stable code for each thing that an operator should think of."""

    CREATED_AGAIN = "created_again"
    """Consumers that no lease has are created again."""
    LEASES_LOSE = "leases_lose"
    """Consumers of granted leases lose units; the leases go on without them."""
    TICKETS_STRANDED = "tickets_stranded"
    """Waiting tickets ask for units that would be gone."""


class Note(Struct, frozen=True):
    """What an operator should think of; it stands in the way of nothing.

    `consumers`: whom it is about, each with its lease or ticket, if that is known.
    """

    code: NoteCode
    message: str
    consumers: Mapping[ConsumerId, LeaseId | None]


def leases_of(
    facts: Facts, consumers: Collection[ConsumerId], leases: Leases
) -> dict[ConsumerId, LeaseId]:
    """Return the granted leases of those of some consumers that have one."""
    found = {}
    for uuid in sorted(consumers):
        held = facts.consumers.get(uuid)
        lease = None if held is None else leases.get((uuid, held.created_at))
        if lease is not None:
            found[uuid] = lease
    return found


def ended(uuid: ConsumerId, lease: LeaseId) -> Violation:
    """Return the violation for a consumer whose lease has ended."""
    message = (
        f"Consumer {uuid} was that of lease {lease}, which has ended: nobody would return what it"
        " would hold again, so it must be left out."
    )
    return Violation(ViolationCode.LEASE_ENDED, message, consumer=uuid)


def is_ended(
    uuid: ConsumerId, owners: Mapping[ConsumerId, Owner], lease: LeaseId, leases: Leases
) -> bool:
    """Return whether a consumer that is gone has no lease any more."""
    return leases.get((uuid, owners[uuid].created_at)) != lease


def notes_of(facts: Facts, wanted: Wanted, leases: Leases) -> tuple[Note, ...]:
    """Return what an operator should think of before this is done."""
    notes = []
    gone = [
        uuid
        for uuid in sorted(wanted.allocations)
        if uuid not in facts.consumers and (uuid, wanted.owners[uuid].created_at) not in leases
    ]
    if gone:
        text = (
            f"{counted(len(gone), 'consumer')} would be created again: leave out those whose owners"
            " are gone, because nobody else would release what they hold."
        )
        notes.append(Note(NoteCode.CREATED_AGAIN, text, dict.fromkeys(gone)))
    losing = {
        uuid
        for uuid, after in wanted.allocations.items()
        if uuid in facts.consumers and _sum(after) < _sum(facts.consumers[uuid].allocations)
    }
    if held := leases_of(facts, losing, leases):
        text = (
            f"{counted(len(held), 'consumer')} of granted leases would lose units: the leases go on"
            " without them."
        )
        notes.append(Note(NoteCode.LEASES_LOSE, text, dict(held)))
    return tuple(notes)


def _sum(held: Allocations) -> int:
    return sum(amount for amounts in held.values() for amount in amounts.values())
