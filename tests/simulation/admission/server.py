"""One process of the service, without sockets and disks: it decides batches on a `Memory`.

The steps are the transactor's: load, decide each call in turn, grant once, commit, answer.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from msgspec import structs

from moorage.core import service_time
from moorage.core.admission import (
    expiry,
    handing_over,
    keeping,
    leases,
    operator_actions,
    pools,
    templates,
)
from moorage.core.admission.admit import TicketsNeeded, admit
from moorage.core.admission.booking_model import Booking, Window
from moorage.core.admission.calendar import bookings
from moorage.core.admission.calendar.bookings import Booker, Made
from moorage.core.admission.facts import Changes, Facts, Keys
from moorage.core.admission.handing_over import Acceptance
from moorage.core.admission.model import Lease, Pool, PoolSpec
from moorage.core.admission.requests import LeaseRequest, Proof
from moorage.core.admission.superseding import group_key
from moorage.core.admission.templates import TemplateWish
from moorage.core.clock import Instant
from moorage.core.errors import Error
from moorage.core.ids import BookingId, LeaseId
from moorage.core.restart import Restart
from moorage.core.service_time import Moment, Timeline
from tests.simulation.admission import calls as do
from tests.simulation.admission.auditor import Auditor
from tests.simulation.admission.memory import Memory

POOLS_MAX = 2
"""Pools of one template at once."""

ALIVE = 5_000_000
"""How old `alive_at` may become before a batch that changes nothing else writes it."""


@dataclass
class Refused:
    """A call came to nothing."""

    code: str


@dataclass
class Booked:
    """The booking of a call."""

    id: BookingId


@dataclass
class Seen:
    """A lease as clients see it. `remaining`: of its TTL, at the time of the answer."""

    lease: Lease
    remaining: int | None


@dataclass
class Batch:
    """The decisions of a batch, before the commit."""

    moment: Moment
    changes: Changes
    calls: list[do.Call]
    outcomes: list[Any]
    """The result of each call: a lease's id, a `Refused`, a `Booked`, or None."""
    skew: int = 0
    mapped: int = 0
    """The skew by which a sweep among the calls has mapped the times of bookings."""
    timeline: Timeline | None = None
    """To be saved."""
    capacity_freed: bool = False
    """Something was given back to the ledger: others may fit now."""


@dataclass
class Server:
    """A process; it only remembers its last clock readings."""

    memory: Memory
    auditor: Auditor
    new_id: Callable[[], LeaseId]
    last: int | None = None
    """The service time of its last batch; None: it has just started."""
    monotonic: int = 0
    mapped: int | None = None
    """The skew by which its sweeper has mapped the times of bookings; None: it has not yet."""

    def decide(self, calls: list[do.Call], wall: int, monotonic: int) -> Batch:
        """Decide a batch; nothing is kept yet."""
        expected = None
        if self.last is not None:
            passed = monotonic - self.monotonic
            expected = Instant(self.last + passed - self.memory.timeline.skew)
        line, moment = service_time.advance(self.memory.timeline, Instant(wall), expected)
        self.last, self.monotonic = moment.at, monotonic
        keys = Keys()
        for call in calls:
            keys.update(keys_of(call, moment))
        stored = self.memory.timeline.skew
        if stored != self.mapped and is_swept(calls):
            keys.calendars |= self.memory.booked()
        facts = self.memory.load(keys)
        facts.timeline = line
        batch = Batch(moment, Changes(), calls, [], line.skew, stored)
        for call in calls:
            batch.outcomes.append(self._decide(call, facts, batch, Instant(wall)))
        self._grant(facts, batch, Instant(wall))
        before = self.memory.timeline
        if batch.changes or line.alive_at - before.alive_at >= ALIVE or line.skew != before.skew:
            batch.timeline = facts.timeline
        return batch

    def commit(self, batch: Batch, true: int) -> None:
        """Commit a batch, and show it to the auditor; an empty one is not committed."""
        swept = is_swept(batch.calls)
        if swept:
            self.mapped = batch.mapped
        if not batch.changes and batch.timeline is None:
            return
        memory = self.memory
        memory.timeline = batch.timeline or memory.timeline
        batch.changes.stamp(memory.epoch, memory.revision + 1)
        memory.save(batch.changes)
        for call, outcome in zip(batch.calls, batch.outcomes, strict=True):
            refused = isinstance(outcome, Refused)
            lease = outcome if isinstance(outcome, str) else None
            self.auditor.decided(call, lease, refused=refused, ended=lease in memory.ended)
        self.auditor.committed(true, batch.moment, batch.changes, swept=swept, skew=batch.skew)

    def answer(self, batch: Batch, outcome: Any) -> Any:
        """Return the answer for the caller."""
        lease = self.memory.find(LeaseId(outcome)) if isinstance(outcome, str) else None
        if lease is None:
            return outcome
        until = lease.heard_until if lease.state == "granted" else None
        return Seen(lease, None if until is None else until - batch.moment.alive)

    def _decide(self, call: do.Call, facts: Facts, batch: Batch, wall: Instant) -> Any:
        try:
            made, answer = self._run(call, facts, batch.moment, wall)
        except Error as refusal:
            return Refused(refusal.code)
        facts.apply(made)
        batch.changes.update(made)
        if isinstance(call, do.Book | do.Rebook | do.Unbook):
            return Booked(answer)
        known = do.Ask | do.Poll | do.Touch | do.Accept | do.Decline
        return answer if isinstance(call, known) else None

    def _run(
        self, call: do.Call, facts: Facts, moment: Moment, wall: Instant
    ) -> tuple[Changes, Any]:
        match call:
            case do.Ask():
                made, asked = leases.acquire(facts, moment, self._ask(call, moment))
                if made:
                    return made, asked
                return leases.repeat(facts, moment, asked, Instant(moment.alive + call.patience))
            case do.Poll(lease):
                known = facts.leases.get(lease)
                patience = 0 if known is None else known.patience
                return leases.poll(facts, moment, lease, Instant(moment.alive + patience))
            case do.Renew(lease, owner, token):
                return leases.renew(facts, moment, lease, Proof(owner, token))
            case do.Release(lease, owner, token):
                return leases.release(facts, moment, wall, lease, Proof(owner, token))
            case do.Revoke(lease):
                return leases.release(facts, moment, wall, lease, Proof(None, None), "revoked")
            case do.Move(lease, _, _, priority):
                return operator_actions.move(facts, lease, priority)
            case do.Force(lease):
                return operator_actions.force(facts, moment, lease)
            case do.Hold(lease, owner, token, hold, at_most):
                proof = Proof(owner, token)
                return leases.hold(facts, moment, lease, proof, hold, at_most=at_most)
            case do.Keep(lease, owner, token, wanted):
                return keeping.keep(facts, moment, lease, Proof(owner, token), wanted, "")
            case do.Offer(lease, owner, token, to, lasts):
                proof = Proof(owner, token)
                return handing_over.offer(facts, moment, lease, proof, to, lasts)
            case do.Withdraw(lease, owner, token):
                return handing_over.withdraw(facts, moment, lease, Proof(owner, token))
            case do.Accept(lease, owner, key):
                how = Acceptance(owner, key, self.new_id(), repr(call))
                return handing_over.accept(facts, moment, wall, lease, how)
            case do.Decline(lease, owner):
                return handing_over.decline(facts, moment, lease, owner)
            case do.Retry(lease, owner, token, ask):
                new = self._ask(ask, moment)
                again = leases.Retry(new)
                return leases.retry(facts, moment, wall, lease, Proof(owner, token), again)
            case do.Report(lease, owner, token, result):
                return leases.outcome(facts, moment, lease, Proof(owner, token), result, "")
            case do.PoolPut(name, spec):
                return pool_put(facts, moment, wall, name, spec)
            case do.TemplatePut(name, spec, idle):
                wish = TemplateWish(spec, idle, POOLS_MAX)
                return templates.put(facts, wall, name, wish)
            case do.PoolPause(name, paused, lasts):
                until = None if lasts is None else Instant(moment.at + lasts)
                return pools.pause(facts, moment, wall, name, paused, until=until)
            case do.PoolDelete(name):
                return pools.delete(facts, moment, name)
            case do.Book() | do.Rebook() | do.Unbook():
                return self._book(call, facts, moment, wall)
            case do.Sweep():
                return expiry.sweep(facts, moment, wall, facts.due)
        raise AssertionError(call)

    def _book(
        self, call: do.Book | do.Rebook | do.Unbook, facts: Facts, moment: Moment, wall: Instant
    ) -> Made:
        by = booker(call)
        match call:
            case do.Book():
                made = booking_of(call, BookingId(self.new_id()), wall)
                return bookings.book(facts, moment.at, made, by)
            case do.Rebook(key, _, needs, spans):
                before = bookings.booking_of(facts, key, by)
                windows = windows_of(spans)
                after = structs.replace(before, needs=needs, windows=windows, updated_at=wall)
                return bookings.change(facts, moment.at, after, by)
            case do.Unbook(key):
                return bookings.cancel(facts, moment, wall, key, by)

    def _ask(self, ask: do.Ask, moment: Moment) -> LeaseRequest:
        return LeaseRequest(
            id=self.new_id(),
            owner=ask.owner,
            key=ask.key,
            digest=repr(ask),
            needs=ask.needs,
            priority=ask.priority,
            ttl=ask.ttl,
            hold=ask.hold,
            patience=ask.patience,
            labels={},
            forced=ask.forced,
            pull=ask.pull,
            allocations=ask.allocations,
            group=ask.group,
            cancel_running=ask.cancel_running,
            preemptible=ask.preemptible,
            booking=ask.booking,
            borrow=ask.borrow,
            heard_until=Instant(moment.alive + ask.patience),
        ).any_of(ask.any_of, in_order=ask.in_order)

    def _grant(self, facts: Facts, batch: Batch, wall: Instant) -> None:
        """Grant what can be granted, loading more of the lines if needed."""
        free = self.memory.capacity - self.memory.taken()
        for key, lease in batch.changes.leases.items():
            before = self.memory.leases.get(key)
            assert lease is not None
            if lease.allocations is not None:
                was = before is not None and before.state == "granted"
                free += int(lease.allocations) * (was - (lease.state == "granted"))
                batch.capacity_freed |= was and lease.state == "ended"
        polled = frozenset(
            LeaseId(outcome)
            for call, outcome in zip(batch.calls, batch.outcomes, strict=True)
            if isinstance(call, do.Ask | do.Poll | do.Retry) and isinstance(outcome, str)
        )
        while True:
            left = [free]

            def try_claim(lease: Lease, left: list[int] = left) -> str | None:
                wanted = int(lease.allocations or 0)
                if wanted > left[0]:
                    return f"{left[0]} are free"
                left[0] -= wanted
                return None

            try:
                made = admit(facts, batch.moment, wall, try_claim, polled)
            except Restart as short:
                assert isinstance(short.needs, TicketsNeeded)
                self.memory.load_more(facts, short.needs.lines)
            else:
                break
        facts.apply(made)
        batch.changes.update(made)


def is_swept(calls: list[do.Call]) -> bool:
    """Is a sweep one of these calls?"""
    return any(isinstance(call, do.Sweep) for call in calls)


def booker(call: do.Book | do.Rebook | do.Unbook) -> Booker:
    """Return who makes a call about a booking."""
    operates = call.operates if isinstance(call, do.Book) else call.owner is None
    return Booker(call.owner or "", frozenset({"operator"} if operates else ()))


def windows_of(spans: tuple[do.Span, ...]) -> tuple[Window, ...]:
    """Return windows."""
    return tuple(Window(Instant(start), Instant(end)) for start, end in spans)


def booking_of(call: do.Book, key: BookingId, wall: Instant) -> Booking:
    """Return the booking that a call asks for."""
    return Booking(
        id=key,
        owner=call.owner,
        key=call.key,
        digest=repr(call),
        needs=call.needs,
        windows=windows_of(call.windows),
        closure=call.closure,
        lead=call.lead,
        no_show=call.no_show,
        note="",
        rule="",
        forced=call.forced,
        generation=1,
        created_at=wall,
        updated_at=wall,
    )


def pool_put(
    facts: Facts, moment: Moment, wall: Instant, name: str, spec: PoolSpec
) -> tuple[Changes, Pool]:
    """Make or change a pool; one without a limit is made for slots, as by a configuration."""
    if spec.limit is None and name not in facts.pools:
        pool = pools.new_pool(name, spec, wall)
        return Changes(pools={name: pool}), pool
    return pools.put(facts, moment, wall, name, spec)


def keys_of(call: do.Call, moment: Moment) -> Keys:
    """Return the keys of a call's decision."""
    match call:
        case do.Ask():
            return Keys(
                pools=call.pools,
                asked={(call.owner, call.key)},
                groups={group_key(call.owner, call.group)} if call.group else set(),
                makable=call.pools,
                bookings={call.booking} if call.booking else set(),
            )
        case do.TemplatePut():
            return Keys(templates=True)
        case do.Retry():
            ask = call.ask
            return Keys(leases={call.lease}, pools=ask.pools, asked={(ask.owner, ask.key)})
        case do.Renew():
            return Keys(heard={call.lease})
        case do.Move():
            return Keys(leases={call.lease}, heads={call.lease})
        case do.Accept(lease, owner, key):
            return Keys(leases={lease}, asked={(owner, key)})
        case do.Poll() | do.Touch() | do.Decline():
            return Keys(leases={call.lease})
        case do.PoolDelete(name):
            return Keys(pools={name}, ends={name})
        case do.PoolPut(name, spec):
            quotas = set() if spec.quota is None else {name}
            mates = set() if spec.cohort is None else {spec.cohort}
            return Keys(pools={name}, quotas=quotas, cohorts=mates)
        case do.PoolPause(name):
            return Keys(pools={name})
        case do.Book(owner=owner, key=key, needs=needs):
            return Keys(calendars={need.pool for need in needs}, booked={(owner, key)})
        case do.Rebook(booking, _, needs):
            pools = {need.pool for need in needs}
            return Keys(bookings={booking}, called=frozenset({booking}), calendars=pools)
        case do.Unbook(booking):
            return Keys(bookings={booking}, called=frozenset({booking}))
        case do.Sweep(names):
            return Keys(pools=set(names), due=moment.at)
    raise AssertionError(call)
