"""Changes in progress: a decision of several steps sees its own earlier changes."""

from collections.abc import Iterable
from uuid import NAMESPACE_OID, uuid5

from msgspec import structs

from moorage.core.admission import pacing
from moorage.core.admission.alternatives import lined_up, remaining
from moorage.core.admission.bars import left_until
from moorage.core.admission.booking_model import OVER
from moorage.core.admission.facts import Changes, Facts
from moorage.core.admission.model import (
    FREE,
    Cause,
    FencingToken,
    Lease,
    Pool,
    Slot,
    confirmed_until,
    confirms_by,
)
from moorage.core.admission.owners import LEASE_PROXY
from moorage.core.admission.requests import settled
from moorage.core.admission.sharing import fair_share
from moorage.core.admission.slots import (
    LeaseEnd,
    Slots,
    give_back,
    named,
    occupied,
    slot_new,
)
from moorage.core.admission.units import is_gang, lacking, rested, units_by_pool
from moorage.core.clock import Instant
from moorage.core.ids import LeaseId
from moorage.core.pool_values import Sharing
from moorage.core.service_time import Moment


class Draft:
    """The changes of one decision so far, and its view: `changes` over `facts`.

    Only this class updates the stored sums (`Pool.occupied`, `waiting`, `gangs`) with the leases.
    """

    def __init__(self, facts: Facts, moment: Moment, wall: Instant) -> None:
        self.facts = facts
        self.moment = moment
        self.wall = wall
        self.changes = Changes()
        self._grants = facts.grants

    def pool(self, name: str) -> Pool:
        """Return a pool as changed so far. Raises KeyError if it was not loaded."""
        changed = self.changes.pools.get(name)
        return self.facts.pools[name] if changed is None else changed

    def slots(self, pool: str) -> dict[str, Slot]:
        """Return the slots of a pool as changed so far, by name."""
        slots = dict(self.facts.slots.get(pool, {}))
        for (of, name), slot in self.changes.slots.items():
            if of != pool:
                continue
            if slot is None:
                slots.pop(name, None)
            else:
                slots[name] = slot
        return slots

    def make(self, pools: dict[str, Pool]) -> None:
        """Add new pools, which this decision may use."""
        if pools:
            self.facts = self.facts.with_pools(pools)
            self.changes.pools.update(pools)

    def arrive(self) -> int:
        """Return the arrival number for a new ticket."""
        last = self.changes.arrivals
        self.changes.arrivals = 1 + (self.facts.arrivals if last is None else last)
        return self.changes.arrivals

    def put(self, lease: Lease) -> None:
        """Store a lease as given; sums do not change."""
        self.changes.leases[lease.id] = lease

    def join(self, ticket: Lease, kept: int | None = None) -> Lease:
        """Add a new ticket to its lines, and store it with its tag, which it returns.

        `kept` is the tag of the ticket or lease whose place it takes; None: it takes none.
        """
        name = ticket.needs[0].pool
        pool = self.changes.pools.get(name) or self.facts.pools[name]
        shared = pool.sharing is not None or pool.spec.fair_share is not None
        if shared and not ticket.newest and not is_gang(ticket.needs):
            ticket = fair_share.tagged(pool, ticket, self.moment.at, kept)
        elif ticket.place:  # it had one in a fair share that has ended
            ticket = structs.replace(ticket, place=0, charge=0)
        if ticket.booking is not None:
            ticket = structs.replace(ticket, booked_until=self._booked_until(ticket))
        self.changes.leases[ticket.id] = ticket
        self.wait(ticket)
        return ticket

    def wait(self, ticket: Lease, sign: int = 1, *, granted: bool = False) -> None:
        """Add a ticket to its lines, or (-1) remove it.

        `granted`: from now on its units count as occupied and, unless it is forced, in pacing.
        """
        lines = lined_up(ticket.alternatives) if ticket.alternatives else ticket.needs
        needed = units_by_pool(lines)
        gang = len(needed) > 1
        taken = needed if lines is ticket.needs else units_by_pool(ticket.needs)
        for name in needed:
            pool = self.changes.pools.get(name) or self.facts.pools[name]
            in_use, paced_at = pool.occupied, pool.paced_at
            units, yields = taken.get(name, 0), pool.yields
            if granted and units:
                in_use += units
                if ticket.preemptible is not None:
                    yields += units
                if pool.spec.pacing is not None and not ticket.forced:
                    paced_at = pacing.paid(pool, units, self.moment.at, ticket.arrival)
            awaited, sought, sharing = pool.awaited, pool.sought, pool.sharing
            if sharing is not None or pool.spec.fair_share is not None:
                sharing = self._shared(pool, ticket, (needed[name], units), sign, granted=granted)
            for need in lines if pool.spec.limit is None else ():
                if need.pool == name and need.wanted:
                    sought = counted(sought, need.wanted, sign * need.units)
                elif need.pool == name:
                    awaited = counted(awaited, need.state, sign * need.units)
            self.changes.pools[name] = structs.replace(
                pool,
                waiting=pool.waiting + sign,
                gangs=pool.gangs + sign * gang,
                awaited=awaited,
                sought=sought,
                occupied=in_use,
                paced_at=paced_at,
                sharing=sharing,
                yields=yields,
            )

    def _shared(
        self, pool: Pool, ticket: Lease, units: tuple[int, int], sign: int, *, granted: bool
    ) -> Sharing | None:
        """Return a pool's sharing; `units`: those of the ticket's line, and those it is granted."""
        lined, taken = units
        if sign > 0:
            return fair_share.waits(pool, ticket, lined, self.moment.at)
        return fair_share.leaves(pool, ticket, lined, self.moment.at, taken if granted else None)

    def grant(self, ticket: Lease, taken: list[Slot], until: Instant | None = None) -> Lease:
        """Turn a ticket into a lease that occupies its units; the caller has checked it.

        If it has alternatives, its `needs` are those of the one that is granted. `until`: when it
        ends at the latest, in service time; None: as its hold says.
        """
        self.wait(ticket, -1, granted=True)
        if ticket.alternatives:
            ticket = settled(ticket, [self.pool(need.pool) for need in ticket.needs])
        return self.start(ticket, taken, until)

    def start(self, ticket: Lease, taken: list[Slot], until: Instant | None = None) -> Lease:
        """Grant a ticket units that already count as occupied, and in pacing."""
        moment = self.moment
        slots: Slots = {}
        if taken:
            dests = {(need.pool, need.state): need.dest for need in ticket.needs}
            for slot in taken:
                dest = dests.get((slot.pool, slot.state), slot.state)
                slots.update(occupied(moment, self.wall, ticket, [slot], dest))
            self.changes.slots.update(slots)
        confirm_by = confirms_by(ticket.ttl, moment) if ticket.attended else None
        lease = structs.replace(
            ticket,
            state="granted",
            granted_at=moment.at,
            heard_until=confirm_by or confirmed_until(ticket, moment),
            confirm_by=confirm_by,
            hold_until=self._hold_until(ticket, until),
            token=FencingToken(0, 0, self._grants),
            slots=named(slots) if taken else {},
            detail="",
        )
        self._grants += 1
        self.put(lease)
        return lease

    def _hold_until(self, ticket: Lease, until: Instant | None) -> Instant | None:
        """Return when the hold of a lease that is granted now ends; None: it has none.

        A lease of the lease proxy ends at the latest after the `proxy_ttl` of its pool.
        """
        spans = [ticket.hold]
        if ticket.owner == LEASE_PROXY:
            spans += [self.pool(need.pool).spec.proxy_ttl for need in ticket.needs]
        ends = [Instant(self.moment.at + span) for span in spans if span is not None]
        return min(ends if until is None else [*ends, until], default=None)

    def end(
        self,
        lease: Lease,
        cause: Cause,
        detail: str = "",
        states: dict[str, str] | None = None,
        *,
        gone: bool = False,
    ) -> Lease:
        """Withdraw a ticket from its lines, or end a lease and free its units, with cooldown.

        `gone`: its holder is known to be gone, so it releases nothing by name later.
        """
        if lease.state == "waiting":
            self.wait(lease, -1)
        else:
            self._free(lease, LeaseEnd(self.moment, self.wall, cause, gone), states)
        return self.stop(lease, cause, detail)

    def wait_again(self, lease: Lease) -> Lease:
        """Turn a grant that nobody has confirmed into its ticket, at its old place in line.

        Its client counts as away, and has its patience from now on to return. Alternatives whose
        pools were deleted meanwhile are none any more. If it was superseded meanwhile, it ends:
        only the newest request of a group waits; and if its booking is over.
        """
        self._free(lease, LeaseEnd(self.moment, self.wall, "unconfirmed"), None)
        if lease.superseded_by is not None:
            return self.stop(lease, "superseded", by(lease.superseded_by))
        until = self._booked_until(lease)
        if until is not None and until <= self.moment.at:
            return self.stop(lease, "revoked", OVER)
        left = remaining(lease.alternatives, self.facts.pools)
        ticket = structs.replace(
            lease,
            needs=lined_up(left) if left else lease.needs,
            alternatives=left,
            state="waiting",
            granted_at=None,
            confirm_by=None,
            heard_until=left_until(self.moment, lease),
            hold_until=None,
            stop_until=None,
            preempted_by=None,
            token=None,
            slots={},
            yields_to=None,
        )
        return self.join(ticket, ticket.place)

    def _booked_until(self, lease: Lease) -> Instant | None:
        """Return when a booking ends whose units a lease uses, or a ticket waits for; None: none.

        As was known last, if it is not loaded any more.
        """
        if lease.booking is None:
            return None
        return self.facts.booked_until(lease.booking) or lease.booked_until

    def stop(self, lease: Lease, cause: Cause, detail: str = "") -> Lease:
        """Mark a lease as ended; the caller takes care of its units."""
        ended = structs.replace(
            lease, state="ended", ended_at=self.moment.at, cause=cause, detail=detail
        )
        self.put(ended)
        return ended

    def vacate(self, pool: Pool, lease: Lease, units: int, idle: int, cause: Cause) -> None:
        """Reduce the occupied units of a pool as changed so far by units of a lease.

        `idle` of them start their cooldown.
        """
        sharing, yields = pool.sharing, pool.yields
        if lease.preemptible is not None:
            yields -= units
        if sharing is not None:
            used, at = cause != "unconfirmed", self.moment.at
            sharing = fair_share.returns(pool, lease, units, at, used=used)
        self.changes.pools[pool.name] = structs.replace(
            pool,
            occupied=pool.occupied - units,
            resting=rested(pool.resting, self.moment.at, pool.spec, cause, idle),
            sharing=sharing,
            yields=yields,
        )

    def _free(self, lease: Lease, end: LeaseEnd, states: dict[str, str] | None) -> None:
        given = give_back(self.facts, lease, end, states) if lease.slots else {}
        self.changes.slots.update(given)
        for name, units in units_by_pool(lease.needs).items():
            pool = self.pool(name)
            if pool.spec.limit is None:
                idle = sum(
                    slot is not None and slot.pool == name and slot.state == FREE
                    for slot in given.values()
                )
            else:
                idle = units
            self.vacate(pool, lease, units, idle, end.cause)

    def pay(self, ticket: Lease, old: Lease) -> Lease:
        """Count the grant of units that an old lease occupies in the pacing of their pools.

        Returns the ticket, with the tag of the old lease.
        """
        for name, units in units_by_pool(ticket.needs).items():
            pool = self.pool(name)
            if pool.spec.pacing is not None:
                paced_at = pacing.paid(pool, units, self.moment.at, ticket.arrival)
                self.changes.pools[name] = structs.replace(pool, paced_at=paced_at)
        return self.take_over(ticket, old, old.place)

    def take_over(self, ticket: Lease, old: Lease, kept: int | None = None) -> Lease:
        """Charge units to who has them from now on, and return the ticket with its tag.

        The old lease has paid for the time in which it had them. `kept` is the tag that the ticket
        keeps; None: it gets its own.
        """
        for name, units in units_by_pool(ticket.needs).items():
            pool, at = self.pool(name), self.moment.at
            more = (ticket.preemptible is not None) - (old.preemptible is not None)
            if more:
                yields = pool.yields + more * units
                pool = self.changes.pools[name] = structs.replace(pool, yields=yields)
            if pool.sharing is not None:
                if not is_gang(ticket.needs) and not ticket.newest:
                    ticket = fair_share.tagged(pool, ticket, at, kept)
                sharing = fair_share.continues(pool, old, ticket, units, at)
                self.changes.pools[name] = structs.replace(pool, sharing=sharing)
        return ticket


def by(newer: LeaseId) -> str:
    """Return the detail of an end because of a newer request, for people."""
    return f"by {newer}"


def counted(counts: dict[str, int], word: str, more: int) -> dict[str, int]:
    """Return counts with `more` (may be negative) added to a word; zeros are dropped."""
    found = {**counts, word: counts.get(word, 0) + more}
    return {word: count for word, count in found.items() if count}


def grow(draft: Draft, ticket: Lease, pools: Iterable[Pool]) -> None:
    """Make the slots that are missing after a ticket has joined the lines of these pools.

    They start in the pool's `Growth.state`: a client may have to prepare them first.
    """
    for before in pools:
        if before.growth is None:
            continue
        pool, name = draft.pool(before.name), before.name
        for n in range(lacking(pool, draft.slots(name).values())):
            fresh = str(uuid5(NAMESPACE_OID, f"{ticket.id}/{name}/{n}"))
            slot = slot_new(name, fresh, before.growth.state, draft.wall, dynamic=True)
            draft.changes.slots[name, fresh] = slot
