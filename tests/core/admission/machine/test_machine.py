"""Random commands under a manual clock: the rules agree with a naive model.

The numbers in the checks are those of the invariants: I1 limits, I2 one holder per slot, I3 gangs
whole, I4 tokens rise, I8 order, I11 nothing grantable is left, I12 pacing, I13 holds, I16 time,
I17 no deadlock, I18 quotas, I27 cohorts, I29 bookings.
"""

from collections.abc import Callable
from typing import Any

from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule
from msgspec import structs

from moorage.core.admission import leases
from moorage.core.admission.model import FencingToken, Lease, Pacing
from moorage.core.admission.requests import Proof
from moorage.core.admission.units import limit_of
from moorage.core.clock import SECOND, Instant
from moorage.core.errors import Code, Error
from moorage.core.ids import LeaseId
from tests.core.admission.build import make_ask
from tests.core.admission.machine.asking import (
    HOLDS,
    LENDERS,
    OWNERS,
    PATIENCE,
    POOLS,
    SLOTS,
    SLOTTED,
    wishes,
)
from tests.core.admission.machine.booking_rules import Bookings
from tests.core.admission.machine.tickets import Pool, Ticket
from tests.core.admission.sums import sums_differ
from tests.simulation.admission.bookings import NEVER

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
several = st.lists(wishes, min_size=2, max_size=4)
WAITS = "w"


class Machine(Bookings):
    """Runs each command on the world and on the model."""

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

    @invariant()
    def lent_is_covered(self) -> None:
        """I27: after a grant in the cohort, its pools use no more than all their limits."""
        mates = {name: x for name, x in self.world.facts.pools.items() if x.spec.cohort}
        fresh = [x for x in self._fresh() if not x.forced and x.needs[0].pool in mates]
        used = sum(pool.occupied for pool in mates.values())
        over = any(mates[x.needs[0].pool].occupied > self._limit(x.needs[0].pool) for x in fresh)
        assert not over or used <= sum(map(self._limit, mates))

    def _limit(self, name: str) -> int:
        return self.world.facts.pools[name].spec.limit or 0

    @invariant()
    def nothing_is_taken_from_a_booking(self) -> None:
        """I29: no lease of others that starts now lasts into the units of a booking."""
        for lease in self._fresh():
            for need in lease.needs if not lease.forced and lease.booking is None else ():
                load = self.model.calendar.load(need.pool)
                ends = NEVER if lease.hold_until is None else lease.hold_until + load.rest
                for time in load.times():
                    taken = time < ends and load.kept_at(time) > 0
                    assert not taken or load.spoken(time) <= load.limit

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
    max_examples=140, stateful_step_count=50, deadline=None, phases=[Phase.reuse, Phase.generate]
)
TestMachine = Machine.TestCase
