"""Admission's share of a batch: decide in turn, then grant, and take what leases hold."""

from collections.abc import Mapping

import msgspec
from msgspec import structs

from moorage.core.admission.admit import ClaimLaterError, LineShort, admit
from moorage.core.admission.facts import Changes, Facts
from moorage.core.admission.immediate import AtOnce
from moorage.core.admission.model import Lease
from moorage.core.clock import Instant
from moorage.core.errors import Error
from moorage.core.ids import ConsumerId, LeaseId
from moorage.core.ledger import allocations
from moorage.core.ledger.allocations import ConsumerRequest, MisfitError, keys_for
from moorage.core.ledger.facts import Changes as LedgerChanges
from moorage.core.ledger.facts import Facts as LedgerFacts
from moorage.core.ledger.facts import Keys as LedgerKeys
from moorage.core.ledger.model import Allocations
from moorage.core.service_time import When
from moorage.service.batch.misfits import CONSUMER, Obstacle, Obstacles, obstacle_of
from moorage.service.batch.service_time import Chronometer
from moorage.service.batch.use_case import AdmissionCase
from moorage.store.admission import load
from moorage.store.api import Plan

CLAIMS_MAX = 256
"""Most tickets for which one batch reads more of the ledger; the next batch continues."""


class NeedsLedgerError(Exception):
    """A lease to be granted or ended holds something in the ledger that is not loaded yet.

    `tickets`: consumers of tickets that ask for something. `lines`: how many tickets of each line
    were loaded; the next run begins with more.
    """

    def __init__(self, keys: LedgerKeys, tickets: set[ConsumerId], lines: dict[str, int]) -> None:
        super().__init__("more of the ledger is needed")
        self.keys = keys
        self.tickets = tickets
        self.lines = lines


class Extra:
    """What a batch needs beyond the keys of its requests."""

    def __init__(self) -> None:
        self.keys = LedgerKeys()
        self.tickets: set[ConsumerId] = set()
        """Consumers of tickets found in lines, to be tried."""
        self.lines: dict[str, int] = {}
        """How many tickets of each line to load before the first is tried."""

    def add(self, needed: NeedsLedgerError) -> None:
        """Add what one more run has found."""
        self.keys.update(needed.keys)
        self.tickets |= needed.tickets
        for pool, known in needed.lines.items():
            self.lines[pool] = min(4 * known, CLAIMS_MAX)

    @property
    def is_enough(self) -> bool:
        """Whether the batch has been run again for as many tickets as allowed."""
        return len(self.tickets) >= CLAIMS_MAX


class LedgerShare:
    """What the leases of a batch take from the ledger and return to it."""

    def __init__(
        self,
        facts: LedgerFacts,
        loaded: LedgerKeys,
        extra: Extra,
        admission: Facts,
        now: Instant,
        obstacles: Obstacles,
    ) -> None:
        self._facts = facts
        self._loaded = loaded
        self._extra = extra
        self._admission = admission
        """Everything of admission that the batch has loaded so far."""
        self._now = now
        self._obstacles = obstacles
        self.changes = LedgerChanges()
        """Final changes that were not fetched yet."""
        self._claims: list[tuple[LedgerChanges, LedgerChanges]] = []
        """(made, before) of each claim that may still be undone."""

    def claim(self, lease: Lease) -> str | None:
        """Take what a lease asks for; return None, or why it is not possible.

        Raises NeedsLedgerError, ClaimLaterError.
        """
        request = request_of(lease)
        if request is None:
            return None
        self._need(keys_for([request]), may_wait=True)
        try:
            made = allocations.replace_for(self._facts, self._now, [request])
        except MisfitError as refusal:
            inventory = self._facts.inventories_of(refusal.provider).get(refusal.resource_class)
            obstacle = obstacle_of(refusal.provider, refusal.resource_class, inventory)
            self._obstacles.note(lease, obstacle)
            return refusal.message
        except Error as refusal:  # somebody else has a consumer of that name
            self._obstacles.note(lease, Obstacle(request.consumer, CONSUMER, None, 0))
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
            self.changes.update(made)
        self._claims.clear()

    def release(self, lease: Lease) -> None:
        """Return what a lease holds to the ledger, unless that has happened already.

        If its consumer is gone, or others have created it again, there is nothing to return.
        """
        if lease.allocations is None:
            return
        held = _holdings.decode(lease.allocations)
        self._need(LedgerKeys(consumers={held.consumer}))
        consumer = self._facts.consumers.get(held.consumer)
        if consumer is not None and consumer.created_at == held.since:
            made = allocations.delete_for(self._facts, self._now, held.consumer)
            self._facts.apply(made)
            self.changes.update(made)

    def dated(self, lease: Lease) -> Lease:
        """Return a lease that was just granted, with the time at which its consumer was created."""
        if lease.allocations is None:
            return lease
        held = structs.replace(_holdings.decode(lease.allocations), since=self._now)
        return structs.replace(lease, allocations=text_of(held))

    def stuck(self, pool: str) -> str:
        """Return the tickets of a pool to skip, for `lines_load`."""
        return self._obstacles.stuck(self._facts, pool)

    def fetched(self) -> LedgerChanges:
        """Return the final changes since the last call."""
        changes, self.changes = self.changes, LedgerChanges()
        return changes

    def _need(self, keys: LedgerKeys, *, may_wait: bool = False) -> None:
        """Raise NeedsLedgerError, for all known leases at once, unless these keys are loaded.

        One by one, the batch would run again for each of them. If it has run again often enough,
        what may wait is left to the next batch: ClaimLaterError.
        """
        loaded = self._loaded
        if (
            keys.consumers <= loaded.consumers
            and keys.providers <= loaded.providers
            and keys.classes <= loaded.classes
        ):
            return
        if may_wait and self._extra.is_enough:
            raise ClaimLaterError
        tickets = set()
        for lease in self._admission.leases.values():
            request = request_of(lease)
            if request is None or lease.state == "ended":
                continue
            if lease.state == "granted":
                keys.consumers.add(request.consumer)
            else:
                tickets.add(request.consumer)
                keys.update(keys_for([request]))
        lines = {pool: len(line.tickets) for pool, line in self._admission.lines.items()}
        raise NeedsLedgerError(keys, tickets, lines)


class Granting:
    """The pools and leases of one batch, from load to save."""

    def __init__(self, facts: Facts, when: When, ledger: LedgerShare, late: bool) -> None:
        self.facts = facts
        self.when = when
        self.ledger = ledger
        self.changes = Changes()
        self._polled: set[LeaseId] = set()
        self._at_once: list[AtOnce] = []
        self._late = late

    @classmethod
    def begun(
        cls, facts: Facts, chronometer: Chronometer, wall: Instant, asked: int, ledger: LedgerShare
    ) -> "Granting":
        """Begin with what was loaded, at the present time; see `Chronometer.read`."""
        before = facts.timeline
        facts.timeline, moment = chronometer.read(before, wall, asked)
        when = When(moment, wall)
        # A process that starts after this one would take the jump for time that has passed.
        jumped = facts.timeline.skew != before.skew or facts.timeline.downtime != before.downtime
        return cls(facts, when, ledger, jumped or chronometer.is_late(before, when))

    def decide(self, case: AdmissionCase[object]) -> None:
        """Decide one case. Raises Error when it is refused; NeedsLedgerError."""
        made = case.decide(self.facts, self.when)
        for key, lease in made.leases.items():
            before = self.facts.leases.get(key)
            ends = lease is None or lease.state == "ended"
            if ends and before is not None and before.state == "granted":
                self.ledger.release(before)
        self.facts.apply(made)
        self.changes.update(made)
        self._polled |= case.polled()
        self._at_once += case.at_once()

    def grant(self, lines: Mapping[str, int]) -> Plan[None]:
        """Grant leases to the tickets that may start. Raises NeedsLedgerError.

        Args:
            lines: how many tickets of some lines to load first.
        """
        polled = frozenset(self._polled)
        wanted = {name: count for name, count in lines.items() if name in self.facts.pools}
        if wanted:
            yield from load.lines_load(self.facts, wanted, self.ledger.stuck)
        while True:
            try:
                made = admit(
                    self.facts,
                    self.when.moment,
                    self.when.wall,
                    try_claim=self.ledger.claim,
                    polled=polled,
                    at_once=self._at_once,
                )
            except LineShort as short:
                self.ledger.take_back()
                yield from load.lines_load(self.facts, short.wanted, self.ledger.stuck)
                continue
            self.ledger.kept()
            for key, lease in made.leases.items():
                if lease is not None and lease.state == "granted":
                    made.leases[key] = self.ledger.dated(lease)
            self.facts.apply(made)
            self.changes.update(made)
            return

    def finish(self) -> None:
        """Save the timeline if anything else is saved, or if it is too old."""
        if self.changes or self._late:
            self.changes.timeline = self.facts.timeline


class Holding(msgspec.Struct, frozen=True):
    """What a lease holds in the ledger, as stored with the lease. The consumer must be new."""

    consumer: ConsumerId
    allocations: Allocations
    project_id: str
    user_id: str
    consumer_type: str | None = None
    since: Instant | None = None
    """When its consumer was created, once the lease is granted."""


_holdings = msgspec.json.Decoder(Holding)


def request_of(lease: Lease) -> ConsumerRequest | None:
    """Return what a lease holds in the ledger or asks for; None: nothing."""
    return None if lease.allocations is None else request_from(lease.allocations)


def request_from(text: str) -> ConsumerRequest:
    """Decode what `text_of` encodes."""
    held = _holdings.decode(text)
    return ConsumerRequest(
        held.consumer,
        held.allocations,
        held.project_id,
        held.user_id,
        held.consumer_type,
        generation=None,
    )


def text_of(holding: Holding) -> str:
    """Return the text that is stored with a lease."""
    return msgspec.json.encode(holding).decode()
