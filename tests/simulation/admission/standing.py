"""Invariants of pools, leases and slots after every batch, by the auditor's own books."""

from collections.abc import Mapping
from typing import Any

from msgspec import structs

from moorage.core.admission.facts import Changes
from moorage.core.admission.model import FencingToken, Lease, Pool, PoolSpec
from moorage.core.ids import LeaseId
from tests.simulation.admission import calls as do
from tests.simulation.admission.books import Books, claim, units_in
from tests.simulation.admission.line import place_of

GRANTED = ("token", "granted_at", "slots")
"""The values fixed by a grant."""

ASKED = ("owner", "key", "digest", "pull", "group", "alternatives", "booking", "borrow")
FIXED = (*ASKED, "arrival", "asked_at", "newest")
"""The values fixed by a request. Priority and force: see `as_operators_want`; needs: `needs`."""


def went_on(before: Lease, after: Lease, reported: bool) -> None:
    """I4, I7, I9: fixed values of a lease never change; an ended one only gets its outcome."""
    order = ("waiting", "granted", "ended")
    ahead = order.index(after.state) >= order.index(before.state)
    claim(ahead, "I7", after.id, "went from", before.state, "to", after.state)
    if before.outcome != after.outcome:
        first = reported and before.outcome is None
        claim(first, "I9", after.id, "has another outcome:", before.outcome, after.outcome)
        before = structs.replace(before, outcome=after.outcome)
    if before.state == "ended":
        claim(before == after, "I7", after.id, "changes after its end")
    for name in FIXED:
        claim(getattr(before, name) == getattr(after, name), "I9", after.id, "changes", name)
    needs(before, after)
    if before.state == "granted":
        for name in GRANTED:
            claim(getattr(before, name) == getattr(after, name), "I4", after.id, name)


def needs(before: Lease | None, after: Lease) -> None:
    """I3: a ticket needs what it asked for, in all its lines; a lease one alternative, wholly."""
    if not after.alternatives:
        fixed = before is None or before.needs == after.needs
        claim(fixed, "I3", after.id, "needs something else:", after.needs)
    elif after.granted_at is not None:
        claim(after.needs in after.alternatives, "I3", after.id, "has parts:", after.needs)
        kept = before is None or before.granted_at is None or before.needs == after.needs
        claim(kept, "I3", after.id, "needs something else:", after.needs)
    else:
        pools = {need.pool for needs in after.alternatives for need in needs}
        lines = {need.pool for need in after.needs}
        claim(lines == pools, "I3", after.id, "is in the lines", lines, "not in", pools)


def as_operators_want(places: list[int], forced: bool, after: Lease, told: list[Any]) -> None:
    """I10: only an operator moves a ticket, or forces what did not ask for it."""
    calls = [type(one.call) for one in told if one.lease == after.id and not one.refused]
    claim(after.forced or not forced, "I9", after.id, "is forced no more")
    moved, was_forced = after.priority not in places, after.forced and not forced
    claim(not moved or do.Move in calls, "I10", after.id, "was moved by nobody")
    claim(not was_forced or do.Force in calls, "I10", after.id, "was forced by nobody")


def first_in_line(books: Books, told: list[Any]) -> None:
    """I8: who is moved to the front precedes all others of its lines, but those decided later.

    Tickets with bookings are ahead of all others.
    """
    for index, one in enumerate(told):
        if not isinstance(one.call, do.Move) or one.call.priority is not None or one.refused:
            continue
        later = {other.lease for other in told[index + 1 :] if not other.refused}
        book = books.live.get(one.call.lease)
        if book is None or one.call.lease in later:
            continue
        pools = {need.pool for need in book.seen.needs}
        place = place_of(book.seen)
        for other in books.waiting():
            meets = other.id not in later and any(need.pool in pools for need in other.needs)
            ahead = place_of(other) < place and other.booking is None
            claim(not meets or not ahead, "I8", one.call.lease, "is not first:", other.id)


def slots(books: Books, changes: Changes) -> None:
    """I2, I3, I19: a slot belongs to exactly the one live lease that names it."""
    for at, slot in changes.slots.items():
        claim(slot is not None, "I19", at, "is gone")
        assert slot is not None
        before = books.slots[at].lease
        if before is not None and slot.lease not in (None, before):
            claim(before not in books.live, "I2", at, "was taken from", before)
        books.slots[at] = slot
    if not books.slots:
        return
    shown: dict[LeaseId, list[tuple[str, str]]] = {}
    for at, slot in books.slots.items():
        claim(bool(slot.owner) == (slot.lease is not None), "I19", at, "half held", slot)
        if slot.lease is not None:
            shown.setdefault(slot.lease, []).append(at)
    for lease in books.granted():
        held = [(pool, name) for pool, names in lease.slots.items() for name in names]
        claim(sorted(held) == sorted(shown.pop(lease.id, [])), "I2, I19", lease.id, held)
        for need in lease.needs:
            if books.pools[need.pool].spec.limit is None:
                count = len(lease.slots.get(need.pool, ()))
                claim(count == need.units, "I3", lease.id, "holds", count, "of", need)
    claim(not shown, "I19", "slots are held by what does not live:", shown)


def sums(books: Books, rows: Mapping[str, Pool]) -> None:
    """I3, I15: the stored sums of a pool are those of its leases and tickets."""
    holding, waiting = books.granted(), books.waiting()
    for name, row in rows.items():
        occupied = units_in(holding, name)
        claim(row.occupied == occupied, "I3, I15", name, "says", row.occupied, "not", occupied)
        line = [lease for lease in waiting if units_in([lease], name)]
        gangs = sum(len({need.pool for need in lease.needs}) > 1 for lease in line)
        claim((row.waiting, row.gangs) == (len(line), gangs), "I15", row, len(line), gangs)


def shares(books: Books, rows: Mapping[str, Pool]) -> None:
    """I26: a fair share counts the units and tickets of each owner, and charges it for no more."""
    for name, row in rows.items():
        if row.sharing is None:
            continue
        for owner, one in row.sharing.sharers.items():
            mine = [book.seen for book in books.live.values() if book.seen.owner == owner]
            here = [lease for lease in mine if units_in([lease], name)]
            waiting = [lease for lease in here if lease.state == "waiting"]
            held = units_in([lease for lease in here if lease.state == "granted"], name)
            claim((one.waiting, one.held) == (len(waiting), held), "I26", name, owner, one)
            asked = sum(lease.charge * units_in([lease], name) for lease in here)
            past = (book.seen for book in books.ended.values() if book.seen.owner == owner)
            used = sum(_lasted(lease) * units_in([lease], name) for lease in past)
            debt = one.finish - row.sharing.now
            claim(debt <= asked + used, "I26", name, owner, "owes", debt, "for", asked, used)


def _lasted(lease: Lease) -> int:
    """Return how many milliseconds an ended lease had its units."""
    granted, ended = lease.granted_at, lease.ended_at
    return 0 if granted is None or ended is None else (ended - granted) // 1_000


def rises(name: str, before: Pool | None, after: Pool) -> None:
    """I26: the virtual time of a fair share never falls."""
    if before is not None and before.sharing is not None and after.sharing is not None:
        was, now = before.sharing.now, after.sharing.now
        claim(was <= now, "I26", name, "goes back from", was, "to", now)


def limits(books: Books, granted: list[Lease]) -> None:
    """I1: no grant exceeds the units of a pool."""
    holding = books.granted()
    for name in {need.pool for lease in granted for need in lease.needs}:
        occupied, limit = units_in(holding, name), books.limit(name)
        limit += books.pools[name].spec.borrowing  # what of it is lent: see `cohorts.within`
        claim(occupied <= limit, "I1", name, "has", occupied, "of", limit)
    claim(books.in_ledger() <= books.capacity, "I1", "the ledger is overcommitted")


def quotas(books: Books, taken: list[Lease], changed: set[str]) -> None:
    """I18: who takes over a lease has no more than its quota; not in pools that have changed."""
    for new in taken:
        own = [lease for lease in books.granted() if lease.owner == new.owner]
        for name in {need.pool for need in new.needs} - changed:
            quota, units = books.pools[name].spec.quota, units_in(own, name)
            claim(quota is None or units <= quota, "I18", new.owner, "has", units, "of", quota)


def tokens(books: Books, granted: list[Lease]) -> None:
    """I4: tokens rise, by pool and by slot."""
    for lease in sorted(granted, key=token_of):
        token = token_of(lease)
        claim(token.revision > 0, "I4", lease.id, "has the unfinished token", token)
        for name in {need.pool for need in lease.needs}:
            pool = books.pools[name]
            claim(pool.newest is None or token > pool.newest, "I4", name, token, pool.newest)
            pool.newest = token
            for slot in lease.slots.get(name, ()):
                last = books.slot_tokens.get((name, slot))
                claim(last is None or token > last, "I4", name, slot, token, last)
                books.slot_tokens[name, slot] = token


def token_of(lease: Lease) -> FencingToken:
    """Return the token that a granted lease has."""
    claim(lease.token is not None, "I4", lease.id, "was granted without a token")
    assert lease.token is not None
    return lease.token


def rest_after(lease: Lease, spec: PoolSpec) -> int:
    """Return how long the units of a lease rest: longer if its holder did not give them back."""
    lost = lease.cause in ("revoked", "ttl_over", "superseded", "preempted")
    return max(spec.cooldown, spec.lock_delay) if lost else spec.cooldown
