"""Random commands under a manual clock: the rules agree with a naive model.

The numbers in the checks are those of the invariants: I1 limits, I2 one holder per slot, I3 gangs
whole, I4 tokens rise, I8 order, I11 nothing grantable is left, I12 pacing, I13 holds, I16 time,
I17 no deadlock, I18 quotas.
"""

from collections.abc import Callable
from typing import Any

from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from msgspec import structs

from moorage.core.admission import leases
from moorage.core.admission.model import FencingToken, Lease, Pacing
from moorage.core.admission.requests import NEVER, Proof
from moorage.core.admission.units import limit_of
from moorage.core.clock import SECOND, Instant
from moorage.core.errors import Code, Error
from moorage.core.ids import LeaseId
from tests.core.admission.build import START, World, make_ask
from tests.core.admission.machine.booked import Booking
from tests.core.admission.machine.lent import cohort_of
from tests.core.admission.machine.model import Model
from tests.core.admission.machine.tickets import Pool, Ticket
from tests.core.admission.sums import sums_differ

POOLS = ("p", "q", "s")
LENDERS = ("a", "b", "c")
"""Pools of a cohort."""
SLOTTED = "s"
SLOTS = ("s1", "s2", "s3")
OWNERS = ("shop/ann", "shop/bob", "cid")

descriptions = st.builds(
    Pool,
    limit=st.sampled_from([2, 3, 1, 4, 0]),
    quota=st.sampled_from([None, None, 1, 2]),
    cooldown=st.sampled_from([0, 0, 4 * SECOND]),
    pacing=st.sampled_from([None, None, Pacing(5 * SECOND), Pacing(3 * SECOND, 2)]),
    keep=st.booleans(),
    requeue=st.booleans(),
    newest=st.sampled_from([False, False, False, False, True]),
)
lending = st.tuples(
    st.sampled_from([True, True, True, True, False]),
    st.sampled_from([None, None, None, 0, 1]),
    st.sampled_from([0, 1, 2, 9]),
)
"""Whether a pool is in the cohort, what it lends, and what it may borrow."""
wishes = st.dictionaries(st.sampled_from(POOLS), st.integers(1, 4), min_size=1, max_size=3)
HOLDS = (None, 7 * SECOND, 40 * SECOND)
several = st.lists(wishes, min_size=2, max_size=4)
PATIENCE = 30 * SECOND
WAITS = "w"


class Machine(RuleBasedStateMachine):
    """Runs each command on the world and on the model."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World(page=2)
        self.model = Model(START, SLOTTED, len(SLOTS))
        self.names = 0
        self.tokens: dict[str, FencingToken] = {}
        self.seen: dict[str, Lease] = {}

    @initialize(
        described=st.tuples(*[descriptions] * len(POOLS + LENDERS)),
        lent=st.tuples(*[lending] * len(LENDERS)),
    )
    def begin(self, described: tuple[Pool, ...], lent: tuple[tuple[bool, int | None, int]]) -> None:
        self.world.slots(SLOTTED, *SLOTS)
        for name, pool in zip(POOLS, described, strict=False):
            self.describe(name, pool)
        for name, pool, terms in zip(LENDERS, described[len(POOLS) :], lent, strict=True):
            self.lend(name, pool, terms)

    @rule(name=st.sampled_from(LENDERS), pool=descriptions, terms=lending)
    def lend(self, name: str, pool: Pool, terms: tuple[bool, int | None, int]) -> None:
        """Change a pool of the cohort, which it may leave, and join again."""
        pool.in_cohort, lends, borrows = terms
        pool.lending, pool.borrowing = (lends, borrows) if pool.in_cohort else (None, 0)
        self.describe(name, pool)

    @rule(name=st.sampled_from(POOLS), pool=descriptions)
    def describe(self, name: str, pool: Pool) -> None:
        more: dict[str, Any] = {
            "quota": pool.quota,
            "cooldown": pool.cooldown,
            "pacing": pool.pacing,
            "expire": "keep" if any(self._keeps(name, pool)) else "free",
            "on_retry": "requeue" if pool.requeue else "keep",
            "order": "newest" if pool.newest else "oldest",
            "cohort": "team" if pool.in_cohort else None,
            "lending": pool.lending,
            "borrowing": pool.borrowing,
        }
        pool.keep = more["expire"] == "keep"
        if name == SLOTTED:
            pool.limit = len(SLOTS)
        self.world.pool(name, None if name == SLOTTED else pool.limit, **more)
        self.model.put(name, pool)
        self.admit()

    def _keeps(self, name: str, pool: Pool) -> list[bool]:
        """`expire` is fixed when a ticket is made, so here a pool keeps its first value."""
        old = self.model.pools.get(name)
        return [pool.keep if old is None else old.keep]

    def admit(self, polled: str | None = None) -> None:
        """Grant in the model; tickets of bookings that are over end as soon as they are seen."""
        self.model.admit(polled)
        states = self.world.states()
        for ticket in self.model.tickets:
            if ticket.state == "w" and ticket.booking is not None and not ticket.forced:
                over = self.model.calendar.bookings[ticket.booking].is_over(self.model.now)
                if over and states[ticket.id] == "revoked":
                    ticket.state = "revoked"

    @rule(
        name=st.sampled_from(POOLS + LENDERS),
        paused=st.booleans(),
        seconds=st.sampled_from([None, None, 3, 20]),
    )
    def pause(self, name: str, paused: bool, seconds: int | None = None) -> None:
        seconds = seconds if paused else None
        self.world.pause(name, paused, seconds=seconds)
        pool = self.model.pools[name]
        pool.paused = paused
        pool.paused_until = None if seconds is None else self.model.now + seconds * SECOND
        self.admit()

    @rule(
        needs=wishes,
        owner=st.sampled_from(OWNERS),
        priority=st.sampled_from([0, 0, 0, 1, -1]),
        kind=st.sampled_from(["plain", "plain", "plain", "pull", "polled", "patient", "forced"]),
        hold=st.sampled_from(HOLDS),
        borrow=st.sampled_from([None, None, None, 5 * SECOND]),
        wait=st.sampled_from([0, 4 * SECOND, 20 * SECOND]),
    )
    def ask(
        self,
        needs: dict[str, int],
        owner: str,
        priority: int,
        kind: str,
        hold: int | None,
        wait: int = 0,
        group: str = "",
        cancels: bool = False,
        borrow: int | None = None,
    ) -> None:
        owner = f"boskos:{owner}" if kind == "polled" else owner
        ticket = self._ticket(needs, owner, priority, hold, kind)
        ticket.borrow = borrow
        if group and kind != "polled":
            self._group(ticket, group, cancels)
        self._asks(ticket, needs, wait)

    @rule(
        common=st.one_of(st.just({}), wishes),
        any_of=several,
        in_order=st.booleans(),
        owner=st.sampled_from(OWNERS),
        priority=st.sampled_from([0, 0, 0, 1, -1]),
        kind=st.sampled_from(["plain", "plain", "pull", "patient"]),
        hold=st.sampled_from(HOLDS),
        borrow=st.sampled_from([None, None, None, 5 * SECOND]),
        wait=st.sampled_from([0, 4 * SECOND, 20 * SECOND]),
        group=st.sampled_from(["", "", "main"]),
        cancels=st.booleans(),
    )
    def ask_any(
        self,
        common: dict[str, int],
        any_of: list[dict[str, int]],
        in_order: bool,
        owner: str,
        priority: int,
        kind: str,
        hold: int | None,
        wait: int = 0,
        group: str = "",
        cancels: bool = False,
        borrow: int | None = None,
    ) -> None:
        """I3: a request for any of several alternatives, with common needs."""
        own = [{name: one[name] for name in one.keys() - common.keys()} for one in any_of]
        own = [one for n, one in enumerate(own) if one and one not in own[:n]]
        if len(own) < 2:
            return
        ticket = self._ticket({}, owner, priority, hold, kind)
        ticket.borrow = borrow
        ticket.any_of, ticket.in_order = tuple(common | one for one in own), in_order
        ticket.needs = {name: 0 for one in ticket.any_of for name in one}
        if group:
            self._group(ticket, group, cancels)
        self._asks(ticket, common, wait, any_of=own, in_order=in_order)

    def _group(self, ticket: Ticket, group: str, cancels: bool) -> None:
        project, slash, _ = ticket.owner.partition("/")
        ticket.group, ticket.cancels = (project + slash, group), cancels

    def _asks(self, ticket: Ticket, needs: dict[str, int], wait: int, **more: Any) -> None:
        wait = wait if ticket.waited_for else 0
        try:
            self.world.ask(ticket.id, needs, **self._words(ticket, wait), **more)
        except Error as refusal:
            assert refusal.code in self._refusals(ticket)
            return
        assert not self._refusals(ticket)
        self.model.join(ticket, wait)
        self.admit(ticket.id if ticket.pull else None)

    @rule(
        pool=st.sampled_from(POOLS + LENDERS),
        owner=st.sampled_from(OWNERS),
        priority=st.sampled_from([0, 0, 0, 1]),
        group=st.sampled_from(["main", "topic"]),
        cancels=st.booleans(),
        kind=st.sampled_from(["plain", "plain", "plain", "patient", "pull", "forced"]),
    )
    def push(
        self, pool: str, owner: str, priority: int, group: str, cancels: bool, kind: str
    ) -> None:
        """A request of a group supersedes what waits of it."""
        self.ask({pool: 1}, owner, priority, kind, None, group=group, cancels=cancels)

    @rule(
        pool=st.sampled_from(LENDERS),
        units=st.lists(st.sampled_from([1, 1, 2, 3, 5]), min_size=1, max_size=2, unique=True),
        other=st.sampled_from(["", "", "", "", "", "p"]),
        owner=st.sampled_from(OWNERS),
        priority=st.sampled_from([0, 0, 0, 1, -1]),
        kind=st.sampled_from(["plain", "plain", "plain", "pull", "polled", "patient", "forced"]),
        hold=st.sampled_from(HOLDS),
        wait=st.sampled_from([0, 4 * SECOND, 20 * SECOND]),
    )
    def ask_lenders(
        self,
        pool: str,
        units: list[int],
        other: str,
        owner: str,
        priority: int,
        kind: str,
        hold: int | None,
        wait: int,
    ) -> None:
        """A request for units of a pool in the cohort, or for one of two numbers of them."""
        needs = [{pool: n} | ({other: 1} if other else {}) for n in units]
        if len(needs) > 1 and kind not in ("polled", "forced"):
            self.ask_any({}, needs, False, owner, priority, kind, hold, wait)
        else:
            self.ask(needs[0], owner, priority, kind, hold, wait)

    @rule(
        needs=wishes,
        owner=st.sampled_from(OWNERS),
        starts=st.sampled_from([1, 5, 12, 40]),
        lasts=st.sampled_from([5, 20, 60]),
        more=st.sampled_from([0, 0, 1, 30]),
        lead=st.sampled_from([0, 0, 3]),
        no_show=st.sampled_from([None, None, 4, 15]),
        kind=st.sampled_from(["plain", "plain", "plain", "plain", "closure", "forced"]),
    )
    def book(
        self,
        needs: dict[str, int],
        owner: str,
        starts: int,
        lasts: int,
        more: int,
        lead: int,
        no_show: int | None,
        kind: str,
    ) -> None:
        """I29: units are booked if and only if they are free in all windows."""
        self.names += 1
        key, now, closure = f"b{self.names}", self.model.now, kind == "closure"
        needs = dict.fromkeys(needs, 0) if closure and lead else needs
        spans = [(starts, starts + lasts), (starts + lasts + more, starts + 2 * lasts + more)]
        spans = spans[: 1 + (more > 0)]
        windows = [(now + a * SECOND, now + b * SECOND) for a, b in spans]
        gone = None if no_show is None else no_show * SECOND
        booking = Booking(owner, needs, windows, lead * SECOND, gone, closure)
        above = [
            units > pool.limit or (pool.quota is not None and not closure and units > pool.quota)
            for pool, units in [(self.model.pools[name], units) for name, units in needs.items()]
        ]
        accepted = kind == "forced" or self.model.calendar.accepts(booking)
        try:
            self.world.book(
                key,
                needs,
                *[((a - START) / SECOND, (b - START) / SECOND) for a, b in windows],
                owner=owner,
                lead=booking.lead,
                no_show=booking.no_show,
                closure=closure,
                forced=kind == "forced",
            )
        except Error as refusal:
            assert refusal.code == (Code.UNITS_ABOVE_LIMIT if any(above) else Code.BOOKED)
            assert any(above) or not accepted
            return
        assert accepted
        assert not any(above)
        self.model.calendar.bookings[key] = booking
        self.admit()

    @precondition(lambda self: self.model.calendar.bookings)
    @rule(
        data=st.data(),
        less=st.booleans(),
        thief=st.sampled_from([False, False, False, False, True]),
        kind=st.sampled_from(["plain", "plain", "plain", "pull", "patient"]),
        hold=st.sampled_from(HOLDS),
        group=st.sampled_from(["", "", "", "main"]),
    )
    def use(
        self, data: st.DataObject, less: bool, thief: bool, kind: str, hold: int | None, group: str
    ) -> None:
        """I29: a request for units of a booking, which is for its owner."""
        key = data.draw(st.sampled_from([*self.model.calendar.bookings]))
        booking = self.model.calendar.bookings[key]
        needs = {name: 1 if less else max(1, units) for name, units in booking.needs.items()}
        owner = next(x for x in OWNERS if (x == booking.owner) != thief)
        ticket = self._ticket(needs, owner, 0, hold, kind)
        ticket.books(key)
        if group:
            self._group(ticket, group, cancels=False)
        self._asks(ticket, needs, 0)

    @precondition(lambda self: self.model.calendar.bookings)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from([*self.model.calendar.bookings]))
        self.world.cancel(key)
        self.model.calendar.bookings[key].cancelled = True
        self.admit()

    @rule(
        rush=st.lists(
            st.tuples(
                several,
                st.sampled_from(OWNERS),
                st.sampled_from([0, 0, 1]),
                st.sampled_from(["", "", "main"]),
            ),
            min_size=2,
            max_size=8,
        )
    )
    def rush(self, rush: list[tuple[list[dict[str, int]], str, int, str]]) -> None:
        """Many requests arrive while all pools are paused; then one scan decides about all."""
        paused = [name for name in POOLS if not self.model.pools[name].paused]
        for name in paused:
            self.pause(name, True)
        for n, (needs, owner, priority, group) in enumerate(rush):
            if n % 3:
                self.ask(needs[0], owner, priority, "plain", None, group=group)
            else:
                self.ask_any({}, needs, False, owner, priority, "plain", None, group=group)
        for name in paused:
            self.pause(name, False)

    def _ticket(
        self, needs: dict[str, int], owner: str, priority: int, hold: int | None, kind: str
    ) -> Ticket:
        self.names += 1
        patience = None if kind == "patient" else PATIENCE
        name = f"t{self.names}"
        ticket = Ticket(name, owner, needs, priority, 0, 60 * SECOND, hold, patience)
        ticket.forced, ticket.waited_for = kind == "forced", kind == "pull"
        ticket.pull = kind in ("pull", "polled")
        return ticket

    def _words(self, ticket: Ticket, wait: int = 0) -> dict[str, Any]:
        alive = self.world.moment.alive
        until = None if ticket.patience is None else Instant(alive + wait + ticket.patience)
        return {
            "owner": ticket.owner,
            "priority": ticket.priority if ticket.booking is None else ticket.asked,
            "booking": ticket.booking,
            "borrow": ticket.borrow,
            "hold": NEVER if ticket.hold is None else ticket.hold,
            "heard_until": until,
            "forced": ticket.forced,
            "pull": ticket.pull,
            "group": "" if ticket.group is None else ticket.group[1],
            "cancel_running": ticket.cancels,
        }

    def _refusals(self, ticket: Ticket) -> set[Code]:
        """Return why a request must be refused."""
        found, pools = set(), [self.model.pools[name] for name in ticket.needs]
        mixed = len({pool.newest for pool in pools}) > 1
        if mixed or (len(pools) > 1 and any(pool.in_cohort for pool in pools)):
            found.add(Code.INVALID)
        enough = map(self.model.has_slots, ticket.options)
        can_be = enough if ticket.forced else (not self._is_too_much(x) for x in ticket.options)
        if not any(can_be):
            found.add(Code.UNITS_ABOVE_LIMIT)
        if ticket.booking is not None:
            found |= self._not_booked(ticket, self.model.calendar.bookings[ticket.booking])
        return found

    def _not_booked(self, ticket: Ticket, booking: Booking) -> set[Code]:
        if booking.is_over(self.model.now):
            return {Code.BOOKING_NOT_FOUND}
        if booking.owner != ticket.owner:
            return {Code.HOLDER_MISMATCH}
        if booking.closure:
            return {Code.INVALID}
        more = any(units > booking.needs.get(name, 0) for name, units in ticket.needs.items())
        return {Code.UNITS_ABOVE_LIMIT} if more else set()

    def _is_too_much(self, needs: dict[str, int]) -> bool:
        pools = [(self.model.pools[name], units) for name, units in needs.items()]
        quotas = [pool.quota is not None and units > pool.quota for pool, units in pools]
        limits = [units > pool.limit + pool.borrowing for pool, units in pools]
        return any(limits) or any(quotas)

    @precondition(lambda self: self.model.tickets)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        ticket = self._one(data)
        self.world.release(ticket.id, self._proof(ticket))
        if ticket.state in ("w", "g"):
            self.model.end(ticket, "released" if ticket.state == "g" else "withdrawn")
        self.admit()

    @precondition(lambda self: self.model.tickets)
    @rule(data=st.data())
    def touch(self, data: st.DataObject) -> None:
        kinds = [self.renew, self.poll, self.hold, self.retry, self.retry, self.old_token]
        kinds += [self.leave, self.requeue, self.move, self.force]
        data.draw(st.sampled_from(kinds))(data, self._one(data))

    def renew(self, data: st.DataObject, ticket: Ticket) -> None:
        if self._alive(ticket, lambda: self.world.renew(ticket.id, self._proof(ticket))):
            self.model.hear(ticket)
        self.admit()

    def poll(self, data: st.DataObject, ticket: Ticket) -> None:
        wait = data.draw(st.sampled_from([0, 4, 20])) if ticket.waited_for else 0
        self.world.poll(ticket.id, PATIENCE / SECOND + wait)
        if ticket.state == "w" and ticket.waited_for:
            ticket.heard = self.model.now - self.model.downtime + (wait * SECOND or -1)
        elif ticket.state == "w":
            self.model.hear(ticket)
        self.admit(ticket.id)

    def leave(self, data: st.DataObject, ticket: Ticket) -> None:
        """The client of a request that waits disconnects."""
        world = self.world
        world.do(leases.leave(world.facts, world.moment, LeaseId(ticket.id)))
        if ticket.state == "w" and ticket.patience is not None:
            alive = self.model.now - self.model.downtime - ticket.waited_for
            ticket.heard = min(ticket.heard, alive)
        self.admit()

    def hold(self, data: st.DataObject, ticket: Ticket) -> None:
        wanted = data.draw(st.sampled_from([None, 5 * SECOND, 90 * SECOND]))
        proof = self._proof(ticket)
        sooner = wanted is not None and data.draw(st.booleans())
        until = None if wanted is None else self.model.now + wanted
        stays = sooner and ticket.hold_until is not None and ticket.hold_until <= (until or 0)
        may = stays or self.model.calendar.extends(ticket, until)
        try:
            alive = self._alive(
                ticket, lambda: self.world.hold(ticket.id, wanted, proof, at_most=sooner)
            )
        except Error as refusal:
            assert refusal.code == Code.BOOKED
            assert not may
            return
        if alive:
            assert may
            self._held(ticket, wanted, sooner)
        self.admit()

    def _held(self, ticket: Ticket, wanted: int | None, at_most: bool) -> None:
        if ticket.state != "g":
            stays = at_most and wanted and ticket.hold and ticket.hold <= wanted
            ticket.hold = ticket.hold if stays else wanted
        until = None if wanted is None else self.model.now + wanted
        stays = at_most and until and ticket.hold_until and ticket.hold_until <= until
        if ticket.state == "g" and not stays:
            ticket.hold, ticket.hold_until = wanted, until

    def retry(self, data: st.DataObject, old: Ticket) -> None:
        """Ask for a new lease instead, perhaps with another priority."""
        self._retry(old, data.draw(st.none() | st.integers(-1, 1)), requeue=False)

    def requeue(self, data: st.DataObject, old: Ticket) -> None:
        """Give the units back, and wait at the old place under the same key."""
        self._retry(old, None, requeue=True)

    def _retry(self, old: Ticket, priority: int | None, *, requeue: bool) -> None:
        if old.forced or (old.pull and not old.waited_for):
            return
        kind = "pull" if old.pull else "plain" if old.patience else "patient"
        asked = old.priority if old.asked is None else old.asked
        asked = asked if priority is None else priority
        new = self._ticket(old.needs, old.owner, asked, old.hold, kind)
        new.group, new.borrow = old.group, old.borrow
        if old.booking is not None:
            new.books(old.booking)
        key = self.world.lease(old.id).key if requeue else new.id
        new.any_of, new.in_order = old.any_of, old.in_order
        if new.any_of:
            new.needs = {name: 0 for one in new.any_of for name in one}
        wanted = make_ask(
            new.id,
            {} if new.any_of else old.needs,
            any_of=new.any_of,
            in_order=new.in_order,
            key=key,
            **self._words(new),
        )
        proof = self._proof(old)
        try:
            there = self._alive(
                old, lambda: self.world.retry(old.id, wanted, proof, requeue=requeue)
            )
        except Error as refusal:
            assert refusal.code in self._refusals(new)
            return
        if there and requeue:
            self.model.requeue(old, new)
        elif there:
            self.model.retry(old, new)
        self.admit(new.id if there and not requeue else None)

    def move(self, data: st.DataObject, ticket: Ticket) -> None:
        """I8: an operator moves a ticket; only its place in line changes."""
        priority = data.draw(st.sampled_from([None, None, -2, 0, 2]))
        if ticket.booking is not None:
            return
        if self._alive(ticket, lambda: self.world.move(ticket.id, priority), WAITS):
            self.model.move(ticket, priority)
            assert self.world.lease(ticket.id).priority == ticket.priority
        self.admit()

    def force(self, data: st.DataObject, ticket: Ticket) -> None:
        """An operator forces the grant of a ticket; in a pool with slots there must be enough."""
        if ticket.owner.startswith("boskos:") or (ticket.state == "g" and ticket.forced):
            return
        enough = any(map(self.model.has_slots, ticket.options))
        try:
            if self._alive(ticket, lambda: self.world.force(ticket.id), WAITS):
                assert enough
                ticket.forced = True
        except Error as refusal:
            assert refusal.code == Code.UNITS_ABOVE_LIMIT
            assert not enough
        self.admit()

    def old_token(self, data: st.DataObject, ticket: Ticket) -> None:
        """I4: a request with the token of another lease changes nothing."""
        token = data.draw(st.sampled_from([FencingToken(1, 1, 0), *sorted(self.tokens.values())]))
        lease = self.world.lease(ticket.id)
        if token == lease.token:
            return
        waits = ticket.state == "w"
        # A release withdraws a ticket, whatever its owner believes to have.
        for change in (self.world.renew,) if waits else (self.world.release, self.world.renew):
            try:
                change(ticket.id, Proof(ticket.owner, token))
            except Error as refusal:
                # A grant that was taken back is a ticket again, which has no token.
                assert refusal.code == (Code.LEASE_ENDED if waits else Code.TOKEN_STALE)
            else:
                raise AssertionError("an outdated token was accepted")
            assert self.world.lease(ticket.id) == lease

    @rule(seconds=st.sampled_from([1, 3, 5, 11, 31, 61]))
    def wait(self, seconds: int) -> None:
        """Time passes: the world is swept when something is due, the model at every second."""
        until = self.model.now + seconds * SECOND
        while self.model.now < until:
            due = self.world.due() or until
            assert due > self.model.now
            self.model.now = min(until, due, self.model.now // SECOND * SECOND + SECOND)
            if due == self.model.now:
                self.world.now = due
                self.world.sweep()
            self.model.sweep()
            self.admit()
        self.world.now = until

    @rule(seconds=st.sampled_from([16, 300]))
    def outage(self, seconds: int) -> None:
        """I16: an outage, followed by a sweep."""
        gap = seconds * SECOND
        self.world.now += gap
        self.model.now += gap
        line = self.world.facts.timeline
        self.world.facts.timeline = structs.replace(
            line, downtime=line.downtime + gap, outage_ended_at=Instant(self.world.now)
        )
        self.model.downtime += gap
        self.model.outage_ended = self.model.now
        self.world.sweep()
        self.model.sweep()
        self.admit()

    def _one(self, data: st.DataObject) -> Ticket:
        """Draw a ticket, two out of three times one that has not ended."""
        live = [ticket for ticket in self.model.tickets if ticket.state in ("w", "g")]
        if live and data.draw(st.sampled_from([True, True, False])):
            return data.draw(st.sampled_from(live))
        return data.draw(st.sampled_from(self.model.tickets))

    def _proof(self, ticket: Ticket) -> Proof:
        return Proof(ticket.owner, self.world.lease(ticket.id).token)

    def _alive(self, ticket: Ticket, change: Callable[[], object], among: str = "wg") -> bool:
        """Change a lease in one of these states, and return True; any other must refuse."""
        if ticket.state in [*among]:
            change()
            return True
        try:
            change()
        except Error as refusal:
            assert refusal.code == (Code.NOT_WAITING if among == WAITS else Code.LEASE_ENDED)
            return False
        raise AssertionError(f"a lease in state {ticket.state} was changed")

    @invariant()
    def same_as_the_model(self) -> None:
        """I3, I8, I11, I13, I16, I17: the same tickets are granted, waiting and ended."""
        assert self.world.states() == {t.id: t.state for t in self.model.tickets}
        for ticket in self.model.tickets:
            if ticket.state == "g":
                lease = self.world.lease(ticket.id)
                assert {need.pool: need.units for need in lease.needs} == ticket.needs
                assert lease.granted_at == ticket.granted_at
                assert lease.hold_until == ticket.hold_until

    @invariant()
    def sums_are_right(self) -> None:
        """I1, I2, I18: sums and slots match the leases; no grant exceeds limit or quota."""
        assert sums_differ(self.world.facts) == []
        fresh = [lease for lease in self._fresh() if not lease.forced]
        for lease in fresh:
            for need in lease.needs:
                pool = self.world.facts.pools[need.pool]
                assert pool.occupied <= limit_of(self.world.facts, pool) + pool.spec.borrowing
                held = self.world.facts.held[need.pool, lease.owner]
                assert pool.spec.quota is None or held <= pool.spec.quota

    def _fresh(self) -> list[Lease]:
        """Return the leases that were granted since the last check."""
        granted = [x for x in self.world.facts.leases.values() if x.state == "granted"]
        return [lease for lease in granted if lease.id not in self.tokens]

    @invariant()
    def tokens_rise(self) -> None:
        """I4: tokens rise with every grant of a pool, and the token of a lease never changes."""
        newest = {
            pool: max(
                (self.tokens[x.id] for x in self._with_token(pool) if x.id in self.tokens),
                default=FencingToken(0, 0, 0),
            )
            for pool in POOLS + LENDERS
        }
        for lease in self._fresh():
            assert lease.token is not None
            assert all(lease.token > newest[need.pool] for need in lease.needs)
        for lease in self.world.facts.leases.values():
            if lease.token is not None:
                assert self.tokens.setdefault(lease.id, lease.token) == lease.token
        assert len(set(self.tokens.values())) == len(self.tokens)

    def _with_token(self, pool: str) -> list[Lease]:
        return [
            lease
            for lease in self.world.facts.leases.values()
            if any(need.pool == pool for need in lease.needs)
        ]


# Without shrinking, which takes minutes: a failure prints its seed and all its steps.
Machine.TestCase.settings = settings(
    max_examples=250, stateful_step_count=50, deadline=None, phases=[Phase.reuse, Phase.generate]
)
TestMachine = Machine.TestCase
