"""The one function that grants.

**The rule.** Tickets are scanned by (priority, place, arrival); arrival numbers are global. The
place is 0, the tag of a fair share (`fair_share.py`), or the negative arrival where the newest
request goes first (`order`). A ticket that fits in all its pools is granted. Otherwise its units
are set aside in each of its pools, as far as they are free, and later tickets see only what
remains. A ticket that is passed over (`bars.py`: above the present limit, paused, quota used up,
nobody polls; or it does not fit into the ledger; or bookings hold it up, see
`calendar/booked_pools.py`) sets nothing aside. The scan ends when nothing is free. So no later
ticket takes units that a gang waits for, and no two gangs each occupy part of what the other needs.

**Why pages of single lines are enough.** Each page has the first tickets of its line; tickets of
this batch come from the facts. The pages are merged in the same order, so a ticket is tried
after all earlier tickets of each of its pools with free units: where a pool's page ends earlier,
the scan of that pool stops (`TicketsNeeded`). A pool without free units needs no page: it has
nothing to grant or to set aside. A gang that also needs a pool with free units is in its page.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Sequence
from enum import Enum, auto
from operator import attrgetter

from msgspec import Struct, structs

from moorage.core.admission import pacing
from moorage.core.admission.adaptive.rule import note_use
from moorage.core.admission.alternatives import Needs, asked
from moorage.core.admission.bars import (
    bar_of,
    is_silent,
    is_waited_for,
    is_watched,
    lacking_labels,
    silence_ends,
)
from moorage.core.admission.booking_model import OVER
from moorage.core.admission.calendar import waking
from moorage.core.admission.calendar.booked_pools import BookedPools
from moorage.core.admission.draft import Draft
from moorage.core.admission.facts import Changes, Facts, Immediate
from moorage.core.admission.model import FREE, Lease, Need, Pool, Slot
from moorage.core.admission.sharing.cohorts import Cohort, awaited_in, cohorts_of, given, merged
from moorage.core.admission.sharing.preemption import FRONT, Stopping, pools_that_stop
from moorage.core.admission.slots import IdleSlots
from moorage.core.admission.units import free_units, is_free, load_of, units_by_pool
from moorage.core.clock import Instant
from moorage.core.ids import BookingId, LeaseId
from moorage.core.restart import Restart
from moorage.core.service_time import Moment

PAGE = 16
"""Tickets to load first of a line of which none are loaded."""


class Later(Enum):
    """The answer of a claim that this batch may not try any more."""

    LATER = auto()


LATER = Later.LATER

TryClaim = Callable[[Lease], str | Later | None]
"""Claims a ticket's allocations in the ledger; returns None, or why they do not fit.

`LATER`: another batch must try; tickets behind it are not granted either. May raise `Restart`.
"""

Order = tuple[int, int, int]

_POOL = attrgetter("pool")


class TicketsNeeded(Struct, frozen=True):
    """The loaded part of a line ended before the free units of its pool. Claims must be undone."""

    lines: dict[str, int]
    """How many tickets to load of each line, counted from its start."""


def admit(
    facts: Facts,
    moment: Moment,
    wall: Instant,
    try_claim: TryClaim | None = None,
    polled: frozenset[LeaseId] = frozenset(),
    at_once: Sequence[Immediate] = (),
) -> Changes:
    """Grant every ticket that may start, in all loaded pools, and set when to look again.

    Args:
        facts: after all decisions of the batch.
        moment: now.
        wall: wall-clock time, stored in slots.
        try_claim: for tickets with `allocations`; None: there are none.
        polled: pull tickets that were polled in this batch. Others are granted only if a request
            waits for them.
        at_once: requests that get what is left after the lines.

    Raises Restart with TicketsNeeded.
    """
    scan = _Scan(Draft(facts, moment, wall), try_claim, polled)
    if scan.booked:
        scan.booked.give_back()
    scan.force()
    scan.open({ticket.needs[0].pool for one in at_once for ticket in one.tickets})
    scan.run()
    for one in at_once:
        scan.serve(one)
    if scan.aside:
        scan.look_again()
    for pool in facts.pools.values():
        if pool.yields or pool.spec.cohort is not None:
            scan.preempt()
            break
    awaited = awaited_in(map(scan.draft.pool, scan.cohorts)) if scan.cohorts else set()
    waking.wake(scan.draft, scan.silent_at, awaited, scan.booked)
    note_use(facts.pools, scan.draft.changes.pools, moment.at)
    return scan.draft.changes


def order(ticket: Lease) -> Order:
    """Return a ticket's sort key in every line: higher priority, lower place, earlier arrival.

    It depends on the order that its pools had when it was asked for: tickets of a pool whose newest
    request goes first have negative places, and those of a fair share have tags.
    """
    return (-ticket.priority, -ticket.arrival if ticket.newest else ticket.place, ticket.arrival)


class _Scan:
    """One pass. `left`: units that are free and not set aside, by pool and state."""

    def __init__(
        self, draft: Draft, try_claim: TryClaim | None, polled: frozenset[LeaseId]
    ) -> None:
        self.draft = draft
        self.facts = draft.facts
        self.moment = draft.moment
        self.try_claim = try_claim
        self.polled = polled
        self.left: dict[str, dict[str, int]] = {}
        self.opened: set[str] = set()
        """Pools in which a ticket may still be granted."""
        self.owners: defaultdict[tuple[str, str], int] = defaultdict(int)
        """Units granted in this scan, by pool and owner."""
        self.aside: list[tuple[Lease, list[str]]] = []
        """Tickets that hold others up in these pools, by units that are set aside."""
        self.idle: dict[str, IdleSlots] = {}
        """By pool."""
        self.forced: defaultdict[tuple[str, str], int] = defaultdict(int)
        """Slots that forced tickets have taken in this scan, by pool and state."""
        self.silent_at: dict[str, Instant] = {}
        """By pool, when a ticket with units set aside is passed over, or may have others stop."""
        self.short: dict[str, int] = {}
        self.cohorts: dict[str, Cohort] = {}
        """By pool, for pools in a cohort."""
        self.credit: dict[str, int] = {}
        """By pool, the units that it may borrow for further tickets of its line."""
        self.borrowers: list[tuple[Lease, int]] = []
        """Tickets that would start with borrowed units, and the units set aside for each."""
        self.outbid: set[str] = set()
        """Pools whose next ticket can borrow no more, and so no ticket behind it."""
        self.booked = BookedPools(draft) if draft.facts.holding else None
        """What bookings keep; None: no loaded pool has any."""

    def force(self) -> None:
        """Grant forced tickets, regardless of limit, pacing, cooldown, quota and pause."""
        pools = self.facts.pools
        forced = [t for t in self.facts.leases.values() if t.forced and t.state == "waiting"]
        for ticket in sorted(forced, key=order):
            if not ticket.pull and is_silent(ticket, self.moment):
                continue
            there = [
                needs
                for needs in asked(ticket.needs, ticket.alternatives)
                if all(need.pool in pools and self._is_there(need) for need in needs)
            ]
            if there:
                self._grant(self._choosing(ticket, there))

    def open(self, asked: Collection[str]) -> None:
        """Count free units in pools that have a line or an `Immediate` request."""
        at, changed = self.moment.at, self.draft.changes.pools
        for one in self.facts.pools.values():
            if one.spec.cohort is not None:
                pools = [changed.get(name) or pool for name, pool in self.facts.pools.items()]
                self.cohorts = cohorts_of(self.facts, pools, at)
                break
        for name, stored in self.facts.pools.items():
            pool = changed.get(name) or stored
            if not pool.waiting and name not in asked:
                continue
            limit, cohort = pool.spec.limit, self.cohorts.get(name)
            full = limit is not None and pool.occupied >= limit and cohort is None
            if full or pool.paused or not pacing.is_open(pool, at):
                self.left[name] = {}
                continue
            self.left[name] = left = free_units(self.facts, pool, at)
            if cohort is not None:
                left[FREE], self.credit[name] = cohort.own(name), cohort.most(name)
            for (where, state), units in self.forced.items():
                if where == name:
                    left[state] = left.get(state, 0) - units
            if self._is_left(pool):
                self.opened.add(name)

    def run(self) -> None:
        """Scan the lines of the open pools. Raises Restart."""
        if not self.opened:
            return
        tickets, ends = self._lines()
        for ticket in tickets:
            if not self.opened:
                break
            while ends and ends[-1][0] < order(ticket):
                self._run_short(ends.pop()[1])
            if not self.opened.isdisjoint(map(_POOL, ticket.needs)):
                self._judge(ticket)
        for _, name in ends:
            self._run_short(name)
        if self.short:
            raise Restart(TicketsNeeded(self.short))
        if self.borrowers:
            for ticket, aside in merged(given(self.borrowers, self.cohorts), self.outbid):
                self._borrow(ticket, aside)

    def serve(self, request: Immediate) -> None:
        """Grant all tickets of a request if enough is left and its owner may have it, else none."""
        needs = [ticket.needs[0] for ticket in request.tickets]
        if not all(self._may_have(request, name) for name in {need.pool for need in needs}):
            return
        slots = [self._pick(need, name) for need, name in zip(needs, request.names, strict=False)]
        slots = slots or [self._idle(need.pool).of(need.state)[-1] for need in needs]
        if None in slots:
            return
        for ticket, slot in zip(request.tickets, slots, strict=True):
            assert slot is not None
            self._idle(slot.pool).remove(slot)
            self._use(ticket.needs[0], forced=False)
            arrived = structs.replace(ticket, arrival=self.draft.arrive())
            granted = self.draft.grant(self.draft.join(arrived), [slot])
            if self.booked:
                self.booked.granted(granted)
            self.owners[slot.pool, ticket.owner] += 1

    def look_again(self) -> None:
        """Have another batch grant what is set aside for those who have no quota for it since."""
        for ticket, pools in self.aside:
            waits = ticket.id not in self.draft.changes.leases and not ticket.forced
            if waits and self._is_barred(ticket, ticket.needs):
                self.silent_at |= dict.fromkeys(pools, self.moment.at)

    def preempt(self) -> None:
        """Have holders asked to stop for tickets that cannot start otherwise. Raises Restart."""
        pools = pools_that_stop(self.facts, self.draft.pool, self.moment.at)
        if not pools:
            return
        front = {ticket.id: ticket for name in pools for ticket in self._front(name)}
        if self.short:
            raise Restart(TicketsNeeded(self.short))
        now_pools = {name: self.draft.pool(name) for name in self.facts.pools}
        leases = (self.facts.leases | self.draft.changes.leases).values()
        stopping = Stopping(leases, pools, now_pools, self.draft.slots, self.moment)
        for ticket in sorted(front.values(), key=order):
            chosen = self._preferred(ticket) if ticket.alternatives else ticket
            if chosen is not None and not stopping.judge(chosen):
                self._note_silence(ticket, [need.pool for need in ticket.needs])
        for name, at in stopping.again().items():
            self.silent_at[name] = min(self.silent_at.get(name, at), at)
        self.draft.changes.leases |= stopping.asked
        self.draft.changes.stopping.update(stopping.requests)
        for key, place in stopping.places.items():
            self.draft.put(structs.replace(front[key], place=place))

    def _front(self, name: str) -> list[Lease]:
        """Return the first tickets of a line that wait for units only."""
        line = self.facts.lines.get(name)
        if line is None:
            self.short[name] = PAGE
            return []
        found = []
        for known in self.facts.leases.values():
            ticket = self.draft.changes.leases.get(known.id, known)
            if ticket is None or ticket.state != "waiting" or ticket.forced or ticket.detail:
                continue
            there = line.whole or (line.end is not None and order(ticket) <= line.end)
            unasked = is_silent(ticket, self.moment) or (ticket.pull and not is_waited_for(ticket))
            unasked = unasked and ticket.id not in self.polled
            if not there or unasked or all(need.pool != name for need in ticket.needs):
                continue
            if ticket.alternatives or not self._is_barred(ticket, ticket.needs):
                found.append(ticket)
        loaded = len(line.tickets)
        if not line.whole and (not found or loaded < PAGE):
            self.short[name] = max(PAGE, 4 * loaded if loaded >= PAGE else 0)
        return sorted(found, key=order)[:FRONT]

    def _lines(self) -> tuple[list[Lease], list[tuple[Order, str]]]:
        """Return the tickets to scan, and where the loaded part of each open line ends.

        The ends are sorted in reverse; a line that is fully loaded has none.
        """
        known = dict.fromkeys(self.opened, 0)
        tickets = []
        for lease in self.facts.leases.values():
            if lease.state != "waiting" or lease.id in self.draft.changes.leases:
                continue
            pools = known.keys() & map(_POOL, lease.needs)
            for name in pools:
                known[name] += 1
            if pools:
                tickets.append(lease)
        ends = []
        for name, count in known.items():
            line = self.facts.lines.get(name)
            if count >= self.draft.pool(name).waiting or (line is not None and line.whole):
                continue
            end = None if line is None else line.end
            ends.append(((-(1 << 62), 0, 0) if end is None else end, name))
        tickets.sort(key=order)
        ends.sort(reverse=True)
        return tickets, ends

    def _run_short(self, name: str) -> None:
        """Request more of a line, if its pool is still open."""
        if name not in self.opened:
            return
        self.opened.discard(name)
        line = self.facts.lines.get(name)
        loaded = 0 if line is None else len(line.tickets)
        units = sum(max(0, left) for left in self.left[name].values())
        self.short[name] = max(PAGE, 4 * loaded, loaded + min(units, self.draft.pool(name).waiting))

    def _judge(self, asked_for: Lease) -> None:
        """Grant the next ticket, set its units aside, or pass it over."""
        ticket = self._preferred(asked_for) if asked_for.alternatives else asked_for
        if ticket is None:
            return
        if not ticket.forced and self._is_passed_over(ticket):
            return
        lacks = False
        if (self.booked or ticket.booking) and not ticket.forced:
            verdict = (self.booked or BookedPools(self.draft)).judge(ticket)
            if verdict == "over":
                self.draft.end(ticket, "revoked", OVER)
            elif verdict == "planned":
                self._note_silence(ticket, [need.pool for need in ticket.needs])
            if verdict in ("over", "planned", "barred"):
                return
            lacks = verdict == "lacks"
        lacks = lacks or self._lacks(ticket, ticket.needs)
        unasked = ticket.pull and not is_waited_for(ticket) and ticket.id not in self.polled
        # Once a line is short the whole scan is repeated, so further claims are pointless.
        if lacks or unasked or self.short:
            if not self._leaves(ticket):
                self._set_aside(ticket)
            elif ticket.needs[0].pool in self.cohorts and ticket.allocations is None:
                self.borrowers.append((ticket, 0))
            return
        refusal = None if ticket.allocations is None else self._claim(asked_for)
        if isinstance(refusal, Later):
            self._stop(asked_for)
        elif refusal is None:
            self._grant(ticket)
        elif refusal != ticket.detail:
            self.draft.put(structs.replace(asked_for, detail=refusal))

    def _borrow(self, ticket: Lease, aside: int) -> None:
        """Grant a ticket with units that other pools lend, or set these aside.

        It comes after all tickets that stay within the limits of their pools; `aside` of its units
        are its own pool's. It has no allocations.
        """
        (need,) = ticket.needs
        name, cohort = need.pool, self.cohorts[need.pool]
        if self._is_passed_over(ticket):  # its owner has got its last units by borrowing them
            self.silent_at[name] = self.moment.at
            return
        missing, there = need.units - aside, cohort.own(name) + cohort.more(name)
        open_now = pacing.is_open(self.draft.pool(name), self.moment.at)
        unasked = ticket.pull and not is_waited_for(ticket) and ticket.id not in self.polled
        if open_now and missing <= there and not unasked:
            cohort.take(name, missing)
            self.owners[name, ticket.owner] += need.units
            self.draft.grant(ticket, [])
            return
        if not self._leaves(ticket):
            cohort.take(name, min(there, missing))
            self._note_silence(ticket, [name])
            self.outbid.add(name)

    def _is_passed_over(self, ticket: Lease) -> bool:
        barred = self._is_barred(ticket, ticket.needs)
        return barred or (ticket.id not in self.polled and is_silent(ticket, self.moment))

    def _is_barred(self, ticket: Lease, needs: Needs) -> bool:
        if lacking_labels(self.facts, needs) is not None:
            return True
        for name, units in units_by_pool(needs).items():
            pool, owner, borrows = self.draft.pool(name), ticket.owner, ticket.allocations is None
            granted = self.owners.get((name, owner), 0)
            if bar_of(self.facts, pool, owner, units, granted, borrows) is not None:
                return True
        return False

    def _preferred(self, ticket: Lease) -> Lease | None:
        """Return a ticket with the needs of the alternative that it gets, or else waits for.

        The latter is the first that is not barred: it must not depend on the load, which changes
        all the time, or the units set aside would be given up again and again. None: all are.
        """
        forced = ticket.forced
        usable = [one for one in ticket.alternatives if forced or not self._is_barred(ticket, one)]
        if not usable:
            return None
        free = usable
        if self.booked and not forced:
            judge = self.booked.judge
            held_up = {
                one: judge(structs.replace(ticket, needs=one), plans=False) for one in usable
            }
            usable = [one for one in usable if held_up[one] in ("fits", "lacks")] or usable[:1]
            free = [one for one in usable if held_up[one] == "fits"]
        fitting = [needs for needs in free if not self._lacks(ticket, needs)]
        return self._choosing(ticket, fitting or usable[:1])

    def _choosing(self, ticket: Lease, fitting: Sequence[Needs]) -> Lease:
        """Return a ticket with the needs of one of these alternatives, as it chooses."""
        if not ticket.alternatives:
            return ticket
        needs = fitting[0]
        if len(fitting) > 1 and (ticket.choice is None or not ticket.choice.in_order):
            needs = min(fitting, key=lambda one: load_of(self.facts, self.draft.pool, one))
        return structs.replace(ticket, needs=needs)

    def _leaves(self, ticket: Lease) -> bool:
        """Does nobody wait for a pull ticket after this batch, in which it was polled?"""
        ends = silence_ends(ticket)
        if ticket.id not in self.polled or not is_waited_for(ticket):
            return False
        return ends is not None and ends <= self.moment.alive

    def _may_have(self, request: Immediate, name: str) -> bool:
        """Does a pool have enough units left for a request, and may its owner have them?"""
        known = self.facts.pools.get(name)
        # The pool may have been deleted, or replaced by one without slots, in the same batch.
        if known is None or known.spec.limit is not None:
            return False
        pool, left = self.draft.pool(name), self.left.get(name, {})
        wanted = Counter(t.needs[0].state for t in request.tickets if t.needs[0].pool == name)
        if any(left.get(state, 0) < units for state, units in wanted.items()):
            return False
        units, ticket = wanted.total(), request.tickets[0]
        if self.booked and not self.booked.permits(ticket, name, wanted[FREE], left.get(FREE, 0)):
            return False
        granted = self.owners.get((name, ticket.owner), 0)
        if bar_of(self.facts, pool, ticket.owner, units, granted) is not None:
            return False
        return pacing.permitted(pool, self.moment.at, units) >= units

    def _pick(self, need: Need, name: str) -> Slot | None:
        """Return the slot of this name, or None if it may not be granted."""
        fit = (slot for slot in self._idle(need.pool).of(need.state) if slot.name == name)
        return next((slot for slot in fit if is_free(slot, self.moment.at)), None)

    def _lacks(self, ticket: Lease, needs: Needs) -> bool:
        """Is too little left for any of these needs of a ticket?"""
        for need in needs:
            if ticket.forced and self.draft.pool(need.pool).spec.limit is not None:
                continue
            if self._left(need, ticket.booking) < need.units:
                return True
        return False

    def _left(self, need: Need, booking: BookingId | None) -> int:
        """Return how many units are left that a need fits, without those that bookings keep."""
        there = self.left[need.pool].get(need.state, 0)
        if self.booked and need.state == FREE:
            there -= self.booked.kept(need.pool, booking)
        return min(there, self._idle(need.pool).left(need.wanted)) if need.wanted else there

    def _is_there(self, need: Need) -> bool:
        """Are there enough slots for a forced ticket? Units without names always suffice."""
        limit = self.draft.pool(need.pool).spec.limit
        return limit is not None or self._idle(need.pool).fitting(need) >= need.units

    def _claim(self, ticket: Lease) -> str | Later | None:
        if self.try_claim is None:
            raise ValueError(f"ticket {ticket.id} has allocations: there must be a way to claim")
        return self.try_claim(ticket)

    def _stop(self, ticket: Lease) -> None:
        """End the scan of a ticket's pools; later tickets are tried in another batch."""
        for need in ticket.needs:
            self.left[need.pool] = {}
            self.opened.discard(need.pool)
            self.draft.changes.unfinished.add(need.pool)

    def _set_aside(self, ticket: Lease) -> None:
        held_up = []
        for need in ticket.needs:
            left, there = self.left[need.pool], self._left(need, ticket.booking)
            kept = min(max(0, there), need.units)
            kept = self._idle(need.pool).set_aside(need, kept) if kept else 0
            left[need.state] = max(0, left.get(need.state, 0) - kept)
            if there > 0:
                held_up.append(need.pool)
            if need.pool in self.cohorts:
                self._take(need.pool, kept)
                lends = kept and self.cohorts[need.pool].above_limit(need.pool, need.units)
                if ticket.allocations is not None:  # it does not borrow, and none behind it does
                    self.credit[need.pool] = 0
                elif self.credit[need.pool] > 0 or lends:  # it lends even if it can borrow nothing
                    self.borrowers.append((ticket, kept))
                    self.credit[need.pool] -= need.units - kept
            self._close(need.pool)
        if held_up:
            self.aside.append((ticket, held_up))
            until = self.booked.leaves_at(ticket) if self.booked else None
            self._note_silence(ticket, held_up, until)

    def _note_silence(self, ticket: Lease, pools: list[str], until: Instant | None = None) -> None:
        """Look at pools again once a ticket that holds others up there is passed over.

        `until`: when bookings end that it does so; None: they do not.
        """
        if is_watched(ticket) or (ticket.pull and ticket.id not in self.polled):
            ends = silence_ends(ticket)
            if ends is not None:
                silent_at = self.moment.at + ends - self.moment.alive + 1
                until = Instant(silent_at if until is None or silent_at < until else until)
        if until is not None:
            for name in pools:
                self.silent_at[name] = min(self.silent_at.get(name, until), until)

    def _take(self, name: str, units: int) -> None:
        """Count units of a cohort; what its other pools may grant changes with them."""
        cohort = self.cohorts[name]
        cohort.take(name, units)
        for other in [one for one in self.opened if self.cohorts.get(one) is cohort]:
            self.left[other][FREE] = cohort.own(other)
            if other != name:
                self._close(other)

    def _grant(self, ticket: Lease) -> None:
        taken = []
        for need in ticket.needs:
            if self.facts.pools[need.pool].spec.limit is None:
                taken += self._idle(need.pool).take(need, need.units)
            self._use(need, forced=ticket.forced)
            self.owners[need.pool, ticket.owner] += need.units
        until = self.booked.ends(ticket) if self.booked else None
        granted = self.draft.grant(ticket, taken, until)
        if self.booked:
            self.booked.granted(granted)
        for need in ticket.needs:
            self._close(need.pool)

    def _use(self, need: Need, *, forced: bool) -> None:
        left = self.left.get(need.pool)
        if left is not None:
            left[need.state] = left.get(need.state, 0) - need.units
            if need.pool in self.cohorts:
                self._take(need.pool, need.units)
        elif forced and self.draft.pool(need.pool).spec.limit is None:
            self.forced[need.pool, need.state] += need.units

    def _close(self, name: str) -> None:
        """Close a pool if nothing in it is left, or its pacing forbids a grant now."""
        if name not in self.opened:
            return
        pool = self.draft.pool(name)
        if not pacing.is_open(pool, self.moment.at):
            self.left[name] = {}
            self.opened.discard(name)
        elif not self._is_left(pool):
            self.opened.discard(name)

    def _is_left(self, pool: Pool) -> bool:
        """Is anything left in a state that a ticket waits for?"""
        left = self.left[pool.name]
        states = (FREE,) if pool.spec.limit is not None else pool.awaited
        kept = self.booked.untouched(pool.name) if self.booked else 0
        credit = self.credit.get(pool.name, 0)
        for state in states:
            if left.get(state, 0) > (kept if state == FREE else 0) or credit > 0:
                return True
        if not pool.sought or left.get(FREE, 0) <= kept:
            return False
        idle = self._idle(pool.name)
        return any(idle.left(wanted) > 0 for wanted in pool.sought)

    def _idle(self, name: str) -> IdleSlots:
        """Return the slots of a pool that are neither granted nor set aside in this scan."""
        found = self.idle.get(name)
        if found is None:
            found = self.idle[name] = IdleSlots(self.facts, self.draft.pool(name), self.moment.at)
        return found
