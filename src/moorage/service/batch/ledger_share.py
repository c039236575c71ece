"""Takes allocations of leases from the ledger, or returns them, in the batch of grant or end."""

import msgspec
from msgspec import structs

from moorage.core.admission.admit import LATER, Later
from moorage.core.admission.facts import Facts
from moorage.core.admission.model import Lease
from moorage.core.clock import Instant
from moorage.core.errors import Error
from moorage.core.ids import ConsumerId
from moorage.core.ledger import allocations, import_mark
from moorage.core.ledger.allocations import ConsumerRequest, MisfitError, keys_for
from moorage.core.ledger.facts import Changes as LedgerChanges
from moorage.core.ledger.facts import Keys as LedgerKeys
from moorage.core.ledger.model import Allocations
from moorage.core.restart import Restart
from moorage.service.batch.extra_loads import ExtraLoads, LedgerNeeded
from moorage.service.batch.ledger_room import LedgerRoom
from moorage.service.batch.misfits import CONSUMER, Misfits, Obstacle, obstacle_of


class LedgerShare:
    """The allocations that the leases of a batch take from the ledger and return to it."""

    def __init__(
        self,
        room: LedgerRoom,
        extra: ExtraLoads,
        admission: Facts,
        now: Instant,
        misfits: Misfits,
    ) -> None:
        self._room = room
        self._facts = room.facts
        self._extra = extra
        self._admission = admission
        """Everything of admission that the batch has loaded so far."""
        self._now = now
        self._misfits = misfits
        self._importing = room.importing
        """The import that is under way: then nothing is taken."""
        self._claims: list[tuple[LedgerChanges, LedgerChanges]] = []
        """(made, before) of each claim that may still be undone."""

    def claim(self, lease: Lease) -> str | Later | None:
        """Take what a lease asks for; return None, or why it is not possible.

        `LATER`: the batch has been run again often enough; the next batch tries. Raises Restart.
        """
        request = request_of(lease)
        if request is None:
            return None
        if self._importing is not None:
            return import_mark.refusal().message
        keys = keys_for([request])
        if not self._is_loaded(keys):
            if self._extra.is_enough:
                return LATER
            raise self._restart(keys)
        try:
            made = allocations.replace_for(self._facts, self._now, [request])
        except MisfitError as refusal:
            inventory = self._facts.inventories_of(refusal.provider).get(refusal.resource_class)
            obstacle = obstacle_of(refusal.provider, refusal.resource_class, inventory)
            self._misfits.note(lease, obstacle)
            return refusal.message
        except Error as refusal:  # somebody else has a consumer of that name
            self._misfits.note(lease, Obstacle(request.consumer, CONSUMER, None, 0))
            return refusal.message
        self._claims.append((made, self._facts.before(made)))
        self._facts.apply(made)
        return None

    def take_back(self) -> None:
        """Undo the claims since `kept`; they will be tried again."""
        while self._claims:
            _, before = self._claims.pop()
            self._facts.apply(before)

    def kept(self) -> None:
        """Make the claims final."""
        for made, _ in self._claims:
            self._room.changes.update(made)
        self._claims.clear()

    def release(self, lease: Lease) -> None:
        """Return what a lease holds to the ledger, unless that has happened already.

        If its consumer is gone, or others have created it again, there is nothing to return.
        Raises Restart.
        """
        if lease.allocations is None:
            return
        held = holding_of(lease.allocations)
        keys = LedgerKeys(consumers={held.consumer}, returned={held.consumer})
        if not self._is_loaded(keys):
            raise self._restart(keys)
        consumer = self._facts.consumers.get(held.consumer)
        if consumer is not None and consumer.created_at == held.since:
            self._room.apply(allocations.delete_for(self._facts, self._now, held.consumer))

    def dated(self, lease: Lease) -> Lease:
        """Return a lease that was just granted, with the time at which its consumer was created."""
        if lease.allocations is None:
            return lease
        held = structs.replace(holding_of(lease.allocations), since=self._now)
        return structs.replace(lease, allocations=text_of(held))

    def stuck(self, pool: str) -> str:
        """Return the tickets of a pool to skip, for `lines_load`."""
        return self._misfits.stuck(self._facts, pool)

    def _is_loaded(self, keys: LedgerKeys) -> bool:
        loaded = self._room.keys
        return (
            keys.consumers <= loaded.consumers
            and keys.returned <= loaded.returned
            and keys.providers <= loaded.providers
            and keys.classes <= loaded.classes
        )

    def _restart(self, keys: LedgerKeys) -> Restart:
        """Return the restart that loads these keys, and those of all other known leases.

        One by one, the batch would run again for each of them.
        """
        tickets = set()
        for lease in self._admission.leases.values():
            request = request_of(lease)
            if request is None or lease.state == "ended":
                continue
            if lease.state == "granted":
                keys.consumers.add(request.consumer)
                keys.returned.add(request.consumer)
            else:
                tickets.add(request.consumer)
                keys.update(keys_for([request]))
        lines = {pool: len(line.tickets) for pool, line in self._admission.lines.items()}
        return Restart(LedgerNeeded(keys, tickets, lines))


class LeaseAllocations(msgspec.Struct, frozen=True):
    """The allocations of a lease, as stored with the lease. The consumer must be new."""

    consumer: ConsumerId
    allocations: Allocations
    project_id: str
    user_id: str
    consumer_type: str | None = None
    since: Instant | None = None
    """When its consumer was created, once the lease is granted."""


_holdings = msgspec.json.Decoder(LeaseAllocations)


def request_of(lease: Lease) -> ConsumerRequest | None:
    """Return what a lease holds in the ledger or asks for; None: nothing."""
    return None if lease.allocations is None else request_from(lease.allocations)


def holding_of(text: str) -> LeaseAllocations:
    """Decode what `text_of` encodes."""
    return _holdings.decode(text)


def request_from(text: str) -> ConsumerRequest:
    """Return what the ledger is asked for by what `text_of` encodes."""
    held = holding_of(text)
    return ConsumerRequest(
        held.consumer,
        held.allocations,
        held.project_id,
        held.user_id,
        held.consumer_type,
        generation=None,
    )


def text_of(holding: LeaseAllocations) -> str:
    """Return the text that is stored with a lease."""
    return msgspec.json.encode(holding).decode()
