"""Watches admission from outside, and reports which invariant it breaks.

It keeps its own books (`books.py`) of requests, grants, ends and answers; it computes nothing
with the package. In short: I1 limit, I2 one holder per slot, I3 gangs whole, I4 tokens rise and
old ones change nothing, I5 nothing leaks, I6 nothing ends before its holder believes so, I7 every
ticket ends in one way, I8 order, I9 keys, I10 who may release, I11 no unit is free that could be
granted, I12 pacing, I13 holds, I15 stored sums, I16 time, I18 quotas, I19 slots show exactly their
leases, I21 pauses end in time, I22 only the newest of a group waits, I23 pools on demand stay while
they are used, I24 who takes over a lease was offered it, and nothing else of it changes, I25 what
is kept for inspection has an end, I26 fair shares, I27 cohorts, I28 preemption, I29 bookings. I14,
I20 and I30 are the simulation's (restarts, an end of all faults, and lines that nothing wakes).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from msgspec import structs

from moorage.core.admission.facts import Changes
from moorage.core.admission.model import Lease, Pool, Slot
from moorage.core.ids import LeaseId
from moorage.core.limits import MOVED_PRIORITY_MAX
from moorage.core.service_time import Moment
from tests.simulation.admission import calls as do
from tests.simulation.admission import cohorts, newest, preemption, standing
from tests.simulation.admission.bookings import Calendar
from tests.simulation.admission.books import Books, LeaseBook, PoolBook, claim, units_in
from tests.simulation.admission.line import Scan

SECOND = 1_000_000
JUMP = SECOND
OUTAGE = 15 * SECOND
SPARE = 5
"""A ticket may wait this part of its patience longer than it was silent for."""
TICK = SECOND
"""Grants that only need time happen this soon after, while the service is up."""


@dataclass
class Told:
    """One call that the service has decided, and its answer."""

    call: do.Call
    lease: LeaseId | None
    """The lease of the call; None: it was refused, or has none."""
    refused: bool
    ended: bool
    """That has ended by now."""


class Auditor:
    """Raises `Violation` as soon as something is not as it must be."""

    def __init__(self, *, capacity: int = 0, slack: int = 0) -> None:
        self.books = Books(capacity=capacity)
        self.slack = slack
        self.rows: dict[str, Pool] = {}
        self.calendar = Calendar(self.books, self.rows)
        self.arrivals = 0
        self.told: list[Told] = []
        self.keys: dict[tuple[str, str], tuple[object, LeaseId]] = {}
        self.successors: dict[tuple[str, str], LeaseId] = {}
        """(owner, key) of new attempts, and what they replace."""
        self.offers: dict[LeaseId, tuple[str, int]] = {}
        """To whom a lease is offered, and until when (service time)."""
        self.taken: dict[LeaseId, LeaseId] = {}
        """New leases of owners that have accepted an offer, and the old ones."""
        self.jumped = False
        """The wall clock was set while no process ran: that cannot be distinguished from time."""
        self.began: int | None = None
        """True time at which the only process began, if it has committed nothing yet."""
        self.overdue: dict[LeaseId, int] = {}
        self.ahead: dict[LeaseId, Lease] = {}
        """Tickets that got a lower place after the grants of this batch, as they were before it."""
        self.used: dict[str, int] = {}
        """When each pool was in use for the last time, by service time."""
        self.in_use: set[str] = set()
        self.true = self.at = self.alive = 0
        self.outage_ended = 0
        self.grants = 0

    def slots_made(self, slots: list[Slot]) -> None:
        """Note slots that were there from the beginning."""
        self.books.slots |= {(slot.pool, slot.name): slot for slot in slots}

    def restarted(self) -> None:
        """Note that no process was up: the tick of timed work begins again."""
        self.overdue.clear()

    # What clients see.

    def believes(self, lease: LeaseId, until: int) -> None:
        """Note until when, in true time, a client may act on a lease."""
        book = self.books.find(lease)
        claim(book is not None, "I14", lease, "was told to its client and is not there")
        assert book is not None
        book.believed_until = max(book.believed_until, until)

    def answered(self, ask: do.Ask | do.Accept, seen: Lease) -> None:
        """Check the answer about a ticket or lease."""
        book = self.books.find(seen.id)
        claim(book is not None, "I14", seen.id, "was acknowledged and is not there")
        assert book is not None
        claim((seen.owner, seen.key) == (ask.owner, ask.key), "I9", "another's lease:", seen)
        _, first = self.keys.setdefault((ask.owner, ask.key), (ask, seen.id))
        claim(first == seen.id, "I9", "one key, two leases:", ask.key, first, seen.id)
        if seen.state == "granted":
            claim(seen.token == book.seen.token, "I9", "two tokens:", seen.token, book.seen.token)

    # What the service does.

    def decided(self, call: do.Call, lease: LeaseId | None, *, refused: bool, ended: bool) -> None:
        """Note the result of a call, before its changes are `committed`."""
        self.told.append(Told(call, lease, refused, ended))

    def committed(
        self, true: int, moment: Moment, changes: Changes, *, swept: bool, skew: int = 0
    ) -> None:
        """Check one batch: its time, and all its changes. `skew`: of the wall clock."""
        self._time(true, moment)
        self.calendar.now(self.at, skew, moment.outage_ended_at, swept=swept)
        for name, row in changes.pools.items():
            self._pool(name, row)
        self.calendar.changed(changes.bookings, self.told)
        for one in self.told:
            self._call(one)
        granted = self._leases(changes)
        newest.one_waits(self.books)
        self.calendar.nobody_called()
        standing.first_in_line(self.books, self.told)
        for one in self.told:
            known = one.lease is None or self.books.find(one.lease) is not None
            claim(known, "I7", one.call, "was accepted and came to nothing")
        self._pay_in_place(granted)
        standing.slots(self.books, changes)
        self._in_order(changes, granted)
        standing.sums(self.books, self.rows)
        standing.shares(self.books, self.rows)
        lined_up = [one for one in granted if not self._aside(one)]
        standing.limits(self.books, lined_up)
        cohorts.within(self.books, self.at, lined_up)
        self.calendar.granted([one for one in granted if one.id not in self.taken])
        self.calendar.accepted(self.told)
        self.calendar.stands()
        standing.tokens(self.books, granted)
        put = {one.call.name for one in self.told if isinstance(one.call, do.PoolPut)}
        standing.quotas(self.books, [one for one in granted if one.id in self.taken], put)
        self.grants += len(granted)
        self._note_use()
        for name in set(self.books.pools) - set(self.rows):
            inside = units_in([*self.books.granted(), *self.books.waiting()], name)
            claim(inside == 0, "I7", name, "is gone with what was in it")
            del self.books.pools[name]
        for key, until in changes.heard.items():
            self._heard(key, until)
        if swept:
            self._nothing_overdue()
            self.calendar.swept(self.slack)
        self.told = []

    def _time(self, true: int, moment: Moment) -> None:
        """I16: the service's time passes as true time does; it never runs back."""
        claim(moment.at >= self.at and moment.alive >= self.alive, "I16", "time runs back", moment)
        claim(moment.alive <= moment.at, "I16", "alive longer than there was time", moment)
        passed = moment.at - self.at
        if self.at and not self.jumped:
            claim(abs(passed - (true - self.true)) <= JUMP, "I16", "time jumps by", passed)
        alive = moment.alive - self.alive
        if self.at and self.began is not None:
            up = true - self.began + JUMP
            claim(alive <= up, "I16", "was up for", up, "and counts as alive for", alive)
            if passed and not self.jumped:
                ended = moment.outage_ended_at
                claim(moment.at - up <= ended <= moment.at, "I16", "no outage before", moment)
            self.outage_ended = moment.outage_ended_at
        elif self.at and passed <= OUTAGE:
            claim(alive == passed, "I16", "alive for", alive, "of", passed)
        elif self.at:
            claim(alive <= OUTAGE, "I16", "an outage of", passed, "counts as", alive)
            self.outage_ended = moment.at
        self.true, self.at, self.alive, self.jumped = true, moment.at, moment.alive, False
        self.began = None

    def _pool(self, name: str, row: Pool | None) -> None:
        if row is None:
            asked = [one.call for one in self.told if not one.refused]
            if do.PoolDelete(name) not in asked:
                newest.goes(self.rows[name], self.books.pools[name], self.used[name], self.at)
            self.rows.pop(name)
            return
        if name not in self.rows and row.on_demand is not None:
            newest.made(row, self.told)
            self.used[name] = self.at
        standing.rises(name, self.rows.get(name), row)
        self.rows[name] = row
        book = self.books.pools.setdefault(name, PoolBook(row.spec))
        book.booked = row.booked_until is not None
        before = (book.spec, book.paused, book.paused_until)
        if before != (row.spec, row.paused, row.paused_until):
            lasts = None if row.paused_until is None else row.paused_until - self.at
            pause = do.PoolPause(name, row.paused, lasts)
            wanted: list[Any] = [do.PoolPut(name, row.spec), pause]
            asked = any(one.call in wanted for one in self.told if not one.refused)
            over = book.paused_until is not None and book.paused_until <= self.at
            ended = book.paused and not row.paused and over
            claim(asked or (ended and book.spec == row.spec), "I10", name, "was changed by nobody")
        book.now(row.spec, row.paused, row.paused_until, self.at)

    def _note_use(self) -> None:
        """Note which pools are used, or were until this batch."""
        live = [*self.books.granted(), *self.books.waiting()]
        for name, pool in self.books.pools.items():
            inside = units_in(live, name) or pool.paused
            if inside or name in self.in_use:
                self.used[name] = self.at
            (self.in_use.add if inside else self.in_use.discard)(name)

    def _call(self, one: Told) -> None:
        """Check that an accepted call is acceptable, and note its consequences."""
        call = one.call
        if isinstance(call, do.Retry) and one.lease is not None:
            self.successors[call.ask.owner, call.ask.key] = call.lease
        if isinstance(call, do.Ask | do.Retry) and one.lease is not None:
            ask = call.ask if isinstance(call, do.Retry) else call
            known, lease = self.keys.setdefault((ask.owner, ask.key), (ask, one.lease))
            claim(lease == one.lease, "I9", "one key, two leases:", ask.key, lease, one.lease)
            claim(known == ask, "I9", "one key, two requests:", known, ask)
        if one.lease is not None:
            self._hands(call, one.lease)
        if (
            isinstance(call, do.Poll | do.Ask | do.Accept)
            and one.lease is not None
            and not one.ended
        ):
            ticket = self.books.live.get(one.lease)
            again = not isinstance(call, do.Poll)  # of a lease that is a renewal
            if ticket is not None and (again or ticket.seen.state == "waiting"):
                self._spoke(ticket)
        if not isinstance(call, do.Touch) or one.lease is None:
            return
        book = self.books.find(call.lease)
        assert book is not None
        if call.owner is not None:
            claim(call.owner == book.seen.owner, "I10", call, "was let in by another owner")
        if call.token is not None:
            claim(call.token == book.seen.token, "I4", call, "was let in by another token")
        if not isinstance(call, do.Release | do.Revoke | do.Report | do.Retry):
            claim(call.lease in self.books.live, "I4", call, "changes what has ended")
        if isinstance(call, do.Renew) and not one.ended:
            self._spoke(book)
        if isinstance(call, do.Hold):
            book.may_hold |= call.ends(self.at, book.may_hold)
        if isinstance(call, do.Keep):
            book.may_hold.add(self.at + call.wanted)

    def _hands(self, call: Any, lease: LeaseId) -> None:
        """Note an offer that was made, or what became of it."""
        offer = self.offers.get(getattr(call, "lease", LeaseId("")))
        if isinstance(call, do.Offer):
            self.offers[call.lease] = (call.to, self.at + call.lasts)
        elif isinstance(call, do.Withdraw):
            self.offers.pop(call.lease, None)
        elif isinstance(call, do.Decline):
            claim(offer and offer[0] == call.owner, "I24", call, "is declined, offered:", offer)
            self.offers.pop(call.lease, None)
        elif isinstance(call, do.Accept):
            known, first = self.keys.setdefault((call.owner, call.key), (call, lease))
            claim((known, first) == (call, lease), "I9", "one key:", known, first, call, lease)
            if lease not in self.taken:
                theirs = offer is not None and offer[0] == call.owner and offer[1] > self.at
                claim(theirs, "I24", call, "takes what is not offered to it:", offer)
                claim(call.lease in self.books.live, "I24", call, "takes what has ended")
                self.taken[lease] = call.lease
                self.offers.pop(call.lease)

    def _leases(self, changes: Changes) -> list[Lease]:
        """Add the after-images to the books; return the granted leases."""
        ended, granted, stopping = [], [], []
        self.ahead = {}
        for key, after in changes.leases.items():
            claim(after is not None, "I7", key, "was forgotten")
            assert after is not None
            book = self.books.find(key)
            before = None if book is None else book.seen
            known = before or self._given(after.id)
            if preemption.is_asked_now(known, after):
                stopping.append(after)
            else:
                newest.asked_to_stop(known, after, self.at, self.alive, self.told)
            if before is None:
                self._arrived(after, changes)
            else:
                told = [one.lease for one in self.told if isinstance(one.call, do.Report)]
                standing.went_on(before, after, reported=key in told)
                if after.state == "waiting" and after.place != before.place:
                    self.ahead[key] = before
                standing.as_operators_want([before.priority], before.forced, after, self.told)
                if before.state == after.state == "granted":
                    self.calendar.extended(before, after)
            if after.state == "ended" and (before is None or before.state != "ended"):
                self._ended(before, after)
                if before is not None and before.state == "granted":
                    ended.append(after)
            elif after.state == "granted" and (before is None or before.state == "waiting"):
                granted.append(after)
            self._note(key, after, book, before)
        preemption.asked(self.books, stopping, self.at, self.alive)
        preemption.goes_ahead(self.ahead, changes.leases, stopping)
        for lease in ended:
            self._rest(lease, granted)
        return granted

    def _note(self, key: LeaseId, after: Lease, book: LeaseBook | None, before: Any) -> None:
        if book is None:
            book = LeaseBook(after, self.alive, self.true)
            self.books.live[key] = book
        given = self.books.find(self.taken[key]) if key in self.taken else None
        if before is None and given is not None:
            self._spoke(book)
            book.may_hold = given.may_hold
        elif after.state == "granted" and (before is None or before.state != "granted"):
            self._spoke(book)
            book.may_hold = self.calendar.ends(after)
        elif before is not None and after.state != "ended":
            self._heard(key, after.heard_until)
        book.seen = after
        if after.state == "ended" and key in self.books.live:
            self.books.ended[key] = self.books.live.pop(key)

    def _taken_over(self, after: Lease) -> None:
        """Check a lease that was handed over: only what was the giver's own differs."""
        old = self.books.find(self.taken[after.id])
        assert old is not None
        before = old.seen
        claim(after.state != "waiting", "I24", after.id, "waits after it was handed over")
        within = newest.scope(before.owner) == newest.scope(after.owner)
        same = ["needs", "slots", "hold_until", "priority", "forced", "ttl", "record", "kept"]
        same += ["preemptible", "booking", *(["group"] if within else [])]
        if not preemption.is_asked_now(before, after):
            same += ["stop_until", "stop_downtime", "preempted_by"]
        claim(within or not after.group, "I24", after.id, "is in a group of others:", after.group)
        for name in same:
            unchanged = getattr(before, name) == getattr(after, name)
            claim(unchanged, "I24", after.id, "has another", name, "than", before.id)
        claim(before.owner != after.owner, "I24", after.id, "was given to its own holder")
        claim(after.arrival > self.arrivals, "I8", after.id, "arrived as", after.arrival)
        self.arrivals = max(self.arrivals, after.arrival)

    def _given(self, lease: LeaseId) -> Lease | None:
        """Return the lease from which this one was taken over; None: it was not."""
        book = self.books.find(self.taken[lease]) if lease in self.taken else None
        return None if book is None else book.seen

    def _earlier(self, lease: Lease) -> Iterator[Lease]:
        """Yield the leases that this one has come from, by retries and by acceptances."""
        while True:
            old = self.taken.get(lease.id) or self.successors.get((lease.owner, lease.key))
            book = None if old is None else self.books.find(old)
            if book is None:
                return
            lease = book.seen
            yield lease

    def _arrived(self, after: Lease, changes: Changes) -> None:
        if after.id in self.taken:
            self._taken_over(after)
            return
        asked = self.keys.get((after.owner, after.key))
        claim(asked is not None and asked[1] == after.id, "I7", after, "was asked for by nobody")
        assert asked is not None
        ask: Any = asked[0]
        asked = after.priority if after.priority_asked is None else after.priority_asked
        options = after.alternatives or (after.needs,)
        there = ask.options
        if (after.owner, after.key) in self.successors:  # a retry: pools may have gone meanwhile
            pools = self.books.pools.keys()
            there = tuple(one for one in there if all(need.pool in pools for need in one)) or there
        claim(options == there and asked == ask.priority, "I3", after, "for", ask)
        claim((after.booking, after.borrow) == (ask.booking, ask.borrow), "I3", after, "for", ask)
        self.calendar.asked(ask)
        standing.needs(None, after)
        (first, *_) = after.needs
        shared = self.rows[first.pool].spec.fair_share is not None
        claim(shared or not after.place, "I8", after.id, "has a place of its own:", after.place)
        old = self.books.find(self.successors.get((after.owner, after.key), LeaseId("")))
        own = ask.priority if ask.booking is None else MOVED_PRIORITY_MAX + 1
        places = [own, *(() if old is None else (old.seen.priority,))]
        taken = newest.taken_over(after, changes)
        places += [] if taken is None else [taken.priority]
        standing.as_operators_want(places, ask.forced, after, self.told)
        place = newest.taken_over(after, changes)
        if place is not None:
            claim(after.newest == place.newest, "I8", after.id, "has another order than", place.id)
        elif (after.owner, after.key) not in self.successors:
            orders = {self.books.pools[need.pool].spec.order for need in after.needs}
            put = any(isinstance(one.call, do.PoolPut) for one in self.told)
            claim(put or after.newest == ("newest" in orders), "I8", after.id, "in", orders)
            claim(after.arrival > self.arrivals, "I8", after.id, "arrived as", after.arrival)
        self.arrivals = max(self.arrivals, after.arrival)

    def _ended(self, before: Lease | None, after: Lease) -> None:
        """Check the cause of an end."""
        book = self.books.find(after.id)
        touched = [
            type(one.call)
            for one in self.told
            if one.lease is not None and getattr(one.call, "lease", None) == after.id
        ]
        match after.cause:
            case "released" | "withdrawn":
                claim(do.Release in touched, "I10", after.id, "was released by nobody")
            case "revoked":
                over = after.booking is not None and self.calendar.is_over(after.booking)
                claim(over or do.Revoke in touched, "I10", after.id, "was revoked by nobody")
            case "retried":
                claim(do.Retry in touched, "I10", after.id, "was retried by nobody")
            case "handed_over":
                new = [key for key, old in self.taken.items() if old == after.id]
                claim(do.Accept in touched and new, "I24", after.id, "was accepted by nobody")
            case "hold_over":
                assert before is not None and book is not None
                due = before.hold_until
                claim(due in book.may_hold, "I13", after.id, "holds until", due, book.may_hold)
                claim(due is not None and due <= self.at, "I13", after.id, "held too short")
            case "ttl_over":
                claim(before and before.kept is None, "I25", after.id, "was to be kept")
                self._unheard(book, after, after.ttl)
                claim(before and before.state == "granted", "I7", after.id, "was no lease")
                claim(not after.keep, "I5", after.id, "is to be kept and was ended")
            case "superseded":
                earlier = [*self._earlier(after)]
                now = (self.at, self.alive)
                newest.superseded(self.books, before, after, *now, self.told, earlier)
            case "preempted":
                preemption.ended(before, after, self.at, self.alive)
            case "unheard":
                self._unheard(book, after, after.patience)
                claim(before and before.state == "waiting", "I7", after.id, "was no ticket")
            case _:
                claim(False, "I7", after.id, "ended without a cause:", after.cause)

    def _unheard(self, book: LeaseBook | None, after: Lease, patience: int | None) -> None:
        """I6: no lease ends before its holder was silent for long enough, by any clock."""
        assert book is not None
        claim(patience is not None, "I6", after.id, "need not be heard of")
        assert patience is not None
        # A pull ticket for which no request waits ends one microsecond earlier, see `kept_until`.
        claim(self.alive >= book.heard_alive + patience - after.pull, "I6", after.id, "early")
        claim(self.true >= book.heard_true + patience - JUMP, "I6", after.id, "ended truly early")
        claim(self.true >= book.believed_until, "I6", after.id, "ended while it was relied on")
        if after.token is not None and self.alive < book.heard_alive + 2 * patience:
            grace = self.outage_ended + patience // 3
            claim(self.at >= grace, "I16", after.id, "ended right after an outage")

    def _heard(self, key: LeaseId, until: int | None) -> None:
        """Note a sign of life, if it is one; then a client must have given it."""
        book = self.books.live.get(key)
        claim(book is not None, "I4", key, "has ended and is heard of")
        assert book is not None
        spoke = (do.Poll, do.Renew, do.Ask, do.Hold, do.Report, do.Keep, do.Offer, do.Accept)
        if book.seen.heard_until == until:
            return
        signs = [one for one in self.told if one.lease == key and isinstance(one.call, spoke)]
        claim(signs, "I5", key, "lives on without a sign of life")
        book.seen = structs.replace(book.seen, heard_until=until)

    def _spoke(self, book: LeaseBook) -> None:
        """Note that from now on it is silent."""
        book.heard_alive, book.heard_true = self.alive, self.true

    def _rest(self, lease: Lease, granted: list[Lease]) -> None:
        if lease.cause == "handed_over" or any(self._in_place(new) == lease.id for new in granted):
            return
        for need in lease.needs:
            pool = self.books.pools[need.pool]
            until = self.at + standing.rest_after(lease, pool.spec)
            if until > self.at:
                pool.rests.append((until, need.units))
            for name in lease.slots.get(need.pool, ()):
                self.books.slot_rests[need.pool, name] = until

    def _in_place(self, new: Lease) -> LeaseId | None:
        """Return the lease whose units a new attempt has taken over, if any."""
        old = self.books.find(self.successors.get((new.owner, new.key), LeaseId("")))
        if old is None or old.seen.token is None or old.seen.ended_at != self.at or new.forced:
            return None
        if old.seen.needs != new.needs or old.seen.allocations or new.allocations:
            return None
        names = [need.pool for need in new.needs]
        if self._just_changed(names):  # so it may have kept its place by how they were before
            return old.seen.id
        pools = [self.books.pools[name] for name in names]
        before = [lease for lease in self.books.granted() if lease.granted_at != self.at]
        for name, pool in zip(names, pools, strict=True):
            if pool.booked or pool.paused or pool.spec.on_retry != "keep":
                return None
            units = units_in([new], name)
            own = [lease for lease in before if lease.owner == new.owner]
            if units_in(before, name) + units > self.books.limit(name):
                return None
            if pool.spec.quota is not None and units_in(own, name) + units > pool.spec.quota:
                return None
        return old.seen.id

    def _just_changed(self, names: list[str]) -> bool:
        changes = (do.PoolPut, do.PoolPause)
        changed = [one.call.name for one in self.told if isinstance(one.call, changes)]
        return bool(set(changed) & set(names)) and all(
            self.books.pools[name].spec.on_retry == "keep" for name in names
        )

    def _pay_in_place(self, granted: list[Lease]) -> None:
        put = {one.call.name for one in self.told if isinstance(one.call, do.PoolPut)}
        for lease in granted:
            if self._in_place(lease) is not None:
                for need in lease.needs:
                    book = self.books.pools[need.pool]
                    (book.pay_perhaps if need.pool in put else book.pay)(self.at, need.units)

    def _in_order(self, changes: Changes, granted: list[Lease]) -> None:
        """I8, I11, I12, I18: the granted tickets, and those that should have been granted."""
        ranked = [lease for lease in granted if not self._aside(lease)]
        polls = (do.Poll, do.Ask, do.Retry)
        scan = Scan(
            self.books,
            self.at,
            self.alive,
            {lease.id for lease in ranked},
            frozenset(o.lease for o in self.told if o.lease and isinstance(o.call, polls)),
            self.calendar,
        )
        for lease in ranked:  # not yet: the scan grants them itself
            self.books.live[lease.id].seen = structs.replace(lease, state="waiting")
        waiting = self.books.waiting()
        places = {key: before.place for key, before in self.ahead.items()}
        try:
            scan.run([structs.replace(t, place=places.get(t.id, t.place)) for t in waiting])
        finally:
            for lease in ranked:
                self.books.live[lease.id].seen = lease
        touched = set(changes.pools)
        if not self.calendar.settled:
            booked = {need.pool for one in self.calendar.bookings.values() for need in one.needs}
            scan.must = {key: m for key, m in scan.must.items() if m.isdisjoint(booked)}
        self.overdue = {key: self.overdue.get(key, self.at) for key in scan.must}
        for key, since in self.overdue.items():
            tick = self.slack if scan.must[key] <= touched else TICK + self.slack
            claim(
                self.at - since <= tick - (tick == 0), "I11", key, "could be granted since", since
            )

    def _aside(self, lease: Lease) -> bool:
        """Return whether it is granted outside the line: forced, for a retry, or handed over."""
        return lease.forced or lease.id in self.taken or self._in_place(lease) is not None

    def _nothing_overdue(self) -> None:
        """I5, I13, I21: after a sweep no lease and no pause is left whose time is over."""
        for name, pool in self.books.pools.items():
            until = pool.paused_until
            claim(until is None or until + self.slack > self.at, "I21", name, "is still paused")
        for key, book in self.books.live.items():
            lease = book.seen
            if (stop := newest.stops_at(lease, self.at - self.alive)) is not None:
                claim(stop + self.slack > self.at, "I22", key, "does not stop")
            if lease.hold_until is not None and lease.state == "granted":
                claim(lease.hold_until + self.slack > self.at, "I13", key, "outlives its hold")
            if lease.kept is not None:
                claim(lease.hold_until is not None, "I25", key, "is kept for ever")
                ends = lease.stop_until is not None and lease.preempted_by is None
                claim(not ends, "I25", key, "is kept, and ends before")
            if lease.state == "granted" and (lease.keep or lease.ttl is None or lease.kept):
                continue
            patience = lease.ttl if lease.state == "granted" else lease.patience
            assert patience is not None
            silent = self.alive - book.heard_alive - self.slack
            excused = self.at < self.outage_ended + patience // 3 + self.slack
            more = patience // SPARE if lease.state == "waiting" else patience if excused else 0
            late = silent > patience + more
            claim(not late, "I5", key, "is", lease.state, "and was silent for", silent)
