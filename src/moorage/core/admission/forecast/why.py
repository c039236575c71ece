"""Why a ticket waits, at which position and for how long; only `admit` decides.

The codes are stable, for programs; the sentences name the constraint and the holders, for people.
"""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct, structs

from moorage.core.admission import pacing
from moorage.core.admission.alternatives import Needs, text_of
from moorage.core.admission.bars import (
    Bar,
    bar_of,
    is_silent,
    is_waited_for,
    is_watched,
    lacking_labels,
)
from moorage.core.admission.facts import Facts
from moorage.core.admission.forecast.booked import BookedBar, booked_bar
from moorage.core.admission.forecast.eta import (
    NEVER,
    Estimate,
    Floor,
    Holder,
    LinePlace,
    Outlook,
    Queue,
    Range,
)
from moorage.core.admission.forecast.holders import Holders, SlotHolder, held_by, holders_of_slots
from moorage.core.admission.model import FREE, Lease, Need, Pool
from moorage.core.admission.sharing.fair_share import Share, share_of
from moorage.core.admission.units import (
    fitting,
    free_units,
    is_gang,
    is_over,
    limit_of,
    rests,
    units_by_pool,
)
from moorage.core.clock import SECOND, Instant
from moorage.core.counting import are, counted, span
from moorage.core.ids import LeaseId
from moorage.core.service_time import Moment
from moorage.core.wishes import labels_text, suits

CODES = {
    "above_limit": "the ticket needs more units than the pool's limit now",
    "labels": "its pool has fewer slots with the labels than the ticket needs",
    "paused": "the pool is paused",
    "quota": "its owner has as many units as the pool's quota permits",
    "booked": "bookings need the units before its hold would end, or its own has not begun",
    "capacity": "its allocations do not fit into the ledger",
    "ahead": "other tickets are before it",
    "set_aside": "the free units are set aside for tickets before it",
    "over": "more units are held than the limit, which was lowered or exceeded by a forced lease",
    "limit": "all units are held",
    "stopping": "leases were asked to stop for it",
    "resting": "freed units are in their cooldown",
    "pacing": "the pacing does not permit the next grant yet",
    "poll": "it is granted when its client asks again",
    "absent": "its client is not connected, so it is passed over until it asks again",
    "next": "it is about to be granted",
}
"""Every code and its meaning."""


class Evidence(Struct, frozen=True):
    """Knowledge about a pool besides its facts."""

    held: tuple[float, ...] = ()
    """Durations of past leases in seconds, ascending."""
    holders: Holders = Holders()
    """The holders of its units."""
    slotted: tuple[SlotHolder, ...] = ()
    """Of a pool with slots: leases that hold them, as in `holding`."""
    holding: tuple[Holder, ...] = ()
    """Granted leases, the oldest grants first; not all, if there are very many."""
    oldest: SlotHolder | None = None
    """That of these leases whose units are held longest."""
    newest: Instant | None = None
    """Since when those of them are held that have been held for the shortest time."""
    stopping: Mapping[LeaseId, tuple[Instant, ...]] = {}
    """By ticket: when the leases end at the latest that are asked to stop for it."""
    line: tuple[int, ...] = ()
    """Units of each ticket in its line that is not passed over, in order."""


class Binding(Struct, frozen=True):
    """The constraint that prevents grants in a pool."""

    code: str
    text: str


class Standing(Struct, frozen=True):
    """A ticket's state of waiting. `position` is that in its longest line; 1 is the first.

    `overdue`: it waits for units of overdue leases; then there is no range. With alternatives, all
    of this is of the one that is expected first.
    """

    position: int
    eta_seconds: Range | None
    code: str
    reason: str
    overdue: bool = False
    alternatives: "tuple[AlternativeStanding, ...]" = ()
    """Of each alternative that was asked for, the one that is expected first at the front."""
    share: Share | None = None
    """What its sharer has of a pool with a fair share; None: it has none."""


class AlternativeStanding(Struct, frozen=True):
    """The state of waiting for one alternative, as if the ticket had asked for it alone."""

    needs: Needs
    standing: Standing


NOTHING = Evidence()


class View(Struct, frozen=True):
    """Knowledge about a pool, and the outlook computed from it."""

    evidence: Evidence
    outlook: Outlook


def view_of(
    facts: Facts, pool: Pool, evidence: Evidence, floors: Mapping[int, Floor] | None = None
) -> View:
    """Return the basis for the standings of a pool's tickets; `floors` as in `Outlook`."""
    limit = limit_of(facts, pool)
    outlook = Outlook(pool, limit, evidence.line, evidence.held, evidence.holding, floors)
    return View(evidence, outlook)


def floors_of(
    facts: Facts,
    moment: Moment,
    gangs: Iterable[tuple[int, Lease]],
    queues: Mapping[str, Queue],
    views: Mapping[str, View],
) -> dict[int, Floor]:
    """Return when the other pools of a line's gangs allow a grant, for `view_of`.

    Args:
        facts: with these other pools, as in `standing`.
        moment: now.
        gangs: `Queue.gangs` of the line.
        queues: of the other pools, as far as they are known.
        views: of the same pools.
    """
    found: dict[int, Floor] = {}
    for index, gang in gangs:
        needs = [need for need in gang.needs if need.pool in views]
        place = {need.pool: queues[need.pool].place_of(gang, need.pool) for need in needs}
        estimate = eta_of(facts, moment, needs, place, views, forced=gang.forced)
        if estimate.seconds is None:
            found[index] = (moment.at if estimate.overdue else NEVER, NEVER)
        else:
            earliest, latest = (round(seconds * SECOND) for seconds in estimate.seconds)
            found[index] = (moment.at + earliest, moment.at + latest)
    return found


def standing(
    facts: Facts,
    moment: Moment,
    ticket: Lease,
    place: Mapping[str, LinePlace],
    views: Mapping[str, View],
    *,
    asking: bool = False,
) -> Standing:
    """Return the standing of a waiting ticket.

    Args:
        facts: with the ticket's pools, their slots, and occupied units by owner under a quota.
        moment: now.
        ticket: that waits.
        place: its place in each of its pools.
        views: of each of its pools.
        asking: whether this is for a client that has just asked for it.
    """
    if ticket.alternatives:
        return _any_of(facts, moment, ticket, place, views, asking=asking)
    return _alone(facts, moment, ticket, place, views, asking=asking)


NAMED = 4
"""Alternatives that the sentence of a reason names."""


def _any_of(
    facts: Facts,
    moment: Moment,
    ticket: Lease,
    place: Mapping[str, LinePlace],
    views: Mapping[str, View],
    *,
    asking: bool,
) -> Standing:
    """Return the standing of the alternative that is expected first, with those of all."""
    found, waits_for = [], True
    for needs in ticket.alternatives:
        one = structs.replace(ticket, needs=needs, alternatives=())
        barred = not ticket.forced and (
            _barred(facts, one) is not None or _booked(facts, moment, one) is not None
        )
        kept = waits_for and not barred
        standing = _alone(facts, moment, one, place, views, asking=True, aside=kept)
        waits_for = waits_for and not kept
        found.append((barred, AlternativeStanding(needs, standing)))
    found.sort(key=lambda each: _expected(*each))
    barred, first = found[0]
    texts = [f"{text_of(one.needs)}: {one.standing.reason}" for _, one in found[:NAMED]]
    if len(found) > NAMED:
        texts.append(f"and {len(found) - NAMED} more")
    best, text = first.standing, f"any of {len(found)}: {' | '.join(texts)}"
    code = best.code
    if not asking and not barred and code != "poll" and _is_absent(moment, ticket):
        code, text = "absent", _absent_text(ticket) + text
    return structs.replace(
        best, code=code, reason=text, alternatives=tuple(one for _, one in found)
    )


def _expected(barred: bool, one: AlternativeStanding) -> tuple[int, bool, float, int]:
    """Return the sort key of alternatives: which is expected first."""
    eta = one.standing.eta_seconds
    rank = 0 if not barred else 1 if eta is not None else 2
    return (rank, eta is None, 0 if eta is None else eta[1], one.standing.position)


def _alone(
    facts: Facts,
    moment: Moment,
    ticket: Lease,
    place: Mapping[str, LinePlace],
    views: Mapping[str, View],
    *,
    asking: bool,
    aside: bool = True,
) -> Standing:
    """Return the standing of a ticket without alternatives; `aside`: units may be set aside."""
    position = max(place[need.pool].rank for need in ticket.needs)
    share = share_of(facts.pools[ticket.needs[0].pool], ticket, moment.at)
    barred = None if ticket.forced else _barred(facts, ticket)
    if barred is not None:
        if not _waits_for_ends(facts, ticket):
            return Standing(position, None, barred.code, barred.text, share=share)
        found = eta_of(facts, moment, ticket.needs, place, views)
        if _is_overtaken(facts, ticket):
            found = Estimate()
        return Standing(
            position, found.seconds, barred.code, barred.text, found.overdue, share=share
        )
    booked = _booked(facts, moment, ticket)
    if booked is not None:
        estimate = eta_of(facts, moment, ticket.needs, place, views)
        seconds = _not_before(estimate.seconds, booked.start, moment.at)
        if ticket.booking is None and _is_overtaken(facts, ticket):
            seconds = None
        return Standing(position, seconds, "booked", booked.text, share=share)
    if ticket.allocations is not None and ticket.detail:
        text = f"waiting for capacity: {ticket.detail}"
        return Standing(position, None, "capacity", text, share=share)
    bound = _bound(facts, moment, ticket, place, views)
    text = bound.text + (_aside(facts, moment, ticket, place) if aside else "")
    overtaken = not ticket.forced and _is_overtaken(facts, ticket)
    text += OVERTAKEN if overtaken else ""
    absent = not asking and bound.code != "poll" and _is_absent(moment, ticket)
    if absent:
        bound, text = Binding("absent", ""), _absent_text(ticket) + text
    estimate = eta_of(facts, moment, ticket.needs, place, views, forced=ticket.forced)
    if overtaken:
        estimate = Estimate()
    return Standing(position, estimate.seconds, bound.code, text, estimate.overdue, share=share)


def _absent_text(ticket: Lease) -> str:
    why = "no request waits for it" if ticket.pull else "its client is not connected"
    return f"passed over: {why}; "


OVERTAKEN = "; newer requests go first"
"""What is said of tickets for which there is no estimate, because others may overtake them."""


def _is_overtaken(facts: Facts, ticket: Lease) -> bool:
    """Would a later request go first in any line of a ticket, even if it has the same priority?"""
    return any(facts.pools[need.pool].spec.order == "newest" for need in ticket.needs)


def _booked(facts: Facts, moment: Moment, ticket: Lease) -> BookedBar | None:
    if ticket.forced or not (facts.holding or ticket.booking):
        return None
    return booked_bar(facts, moment, ticket)


def _not_before(seconds: Range | None, start: int | None, at: Instant) -> Range | None:
    """Return a range that begins when bookings let a ticket start; None: that is not known."""
    if start is None:
        return None
    least = (start - at) / SECOND
    return (least, least) if seconds is None else (max(least, seconds[0]), max(least, seconds[1]))


def eta_of(
    facts: Facts,
    moment: Moment,
    needs: Iterable[Need],
    place: Mapping[str, LinePlace],
    views: Mapping[str, View],
    *,
    forced: bool = False,
) -> Estimate:
    """Return when a ticket may be granted: the latest of its pools decides."""
    earliest = latest = 0.0
    overdue = False
    for need in needs:
        if need.wanted:  # it is open which slots the tickets ahead will get
            return Estimate()
        pool = facts.pools[need.pool]
        free = free_units(facts, pool, moment.at).get(need.state, 0)
        coming = rests(facts, pool, moment.at, need.state)
        found = views[need.pool].outlook.of(
            need.state, free, coming, moment.at, place[need.pool], need.units, forced=forced
        )
        if found.seconds is None and not found.overdue:
            return Estimate()
        overdue = overdue or found.overdue
        if found.seconds is not None:
            earliest, latest = max(earliest, found.seconds[0]), max(latest, found.seconds[1])
    return Estimate(overdue=True) if overdue else Estimate((earliest, latest))


def binding(
    facts: Facts,
    moment: Moment,
    pool: Pool,
    evidence: Evidence = NOTHING,
    units: int = 1,
    state: str = FREE,
    wanted: str = "",
) -> Binding | None:
    """Return the constraint on this many units of a pool, independent of the order of the line.

    None: they are free, and may be granted unless they are set aside.
    """
    if pool.paused:
        return Binding("paused", _paused_text(pool))
    at, need = moment.at, Need(pool.name, units, state, wanted=wanted)
    free = fitting(facts, need, at)
    if free < units:
        return _full(facts, moment, pool, evidence, need, free)
    opens = pacing.opens_at(pool)
    if opens is not None and opens > at:
        return Binding("pacing", f"pacing: next grant in {span(opens - at)}")
    return None


def _barred(facts: Facts, ticket: Lease) -> Binding | None:
    lacking = lacking_labels(facts, ticket.needs)
    if lacking is not None:
        there = facts.grantable(lacking.pool, lacking.wanted)
        return Binding(
            "labels",
            f"no slot: asks for {counted(lacking.units, 'slot')} of {lacking.pool} with"
            f" {labels_text(lacking.wanted)}, but it has {there} now"
            f"{_drained(facts, lacking.pool)}; skipped until there are more",
        )
    for name, units in units_by_pool(ticket.needs).items():
        pool = facts.pools[name]
        bar = bar_of(facts, pool, ticket.owner, units, borrows=ticket.allocations is None)
        if bar is not None:
            return Binding(bar, _bar_text(facts, pool, ticket, units, bar))
    return None


def _waits_for_ends(facts: Facts, ticket: Lease) -> bool:
    """Return whether a ticket is passed over only because of pauses that have an end."""
    if lacking_labels(facts, ticket.needs) is not None:
        return False
    if ticket.allocations is not None and ticket.detail:
        return False  # it did not fit into the ledger either
    for name, units in units_by_pool(ticket.needs).items():
        pool = facts.pools[name]
        if pool.paused and pool.paused_until is None:
            return False
        resumed = structs.replace(pool, paused=False, paused_until=None)
        borrows = ticket.allocations is None
        if bar_of(facts, resumed, ticket.owner, units, borrows=borrows) is not None:
            return False
    return True


def _bar_text(facts: Facts, pool: Pool, ticket: Lease, units: int, bar: Bar) -> str:
    name = pool.name
    if bar == "paused":
        return _paused_text(pool)
    if bar == "above_limit":
        return (
            f"above the limit: asks for {counted(units, 'unit')} of {name}, but the limit is now"
            f" {limit_of(facts, pool)}{_drained(facts, name)}; skipped until the limit is raised"
        )
    held = facts.held.get((name, ticket.owner), 0)
    return (
        f"quota: {ticket.owner} holds {held} of at most {counted(pool.spec.quota or 0, 'unit')}"
        f" of {name} and asks for {units} more"
    )


def _paused_text(pool: Pool) -> str:
    why = f" ({pool.pause_reason})" if pool.pause_reason else ""
    until = "it is resumed" if pool.paused_until is None else "its pause ends"
    return f"paused: {pool.name} grants nothing until {until}{why}"


def _drained(facts: Facts, pool: str) -> str:
    drained = sum(slot.drain is not None for slot in facts.slots.get(pool, {}).values())
    return f", {drained} {are(drained)} drained" if drained else ""


def _bound(
    facts: Facts,
    moment: Moment,
    ticket: Lease,
    place: Mapping[str, LinePlace],
    views: Mapping[str, View],
) -> Binding:
    """Return the constraint of the most relevant pool: a constrained one first, then by rank."""
    found = []
    for need in ticket.needs:
        rank, pool = place[need.pool].rank, facts.pools[need.pool]
        known = views[need.pool].evidence
        # For a ticket behind others it matters only whether anything is free.
        units = need.units if rank == 1 else 1
        bound = None
        if not ticket.forced or pool.spec.limit is None:
            bound = binding(facts, moment, pool, known, units, need.state, need.wanted)
        stops = known.stopping.get(ticket.id)
        # In a cohort the units that it waits for may be lent, so its pool has some that are free.
        if stops and (bound is None or bound.code in ("limit", "over")):
            return Binding("stopping", f"{_place_text(rank)}; {_stop_text(stops, moment.at)}")
        found.append((bound is not None, rank, need, bound))
    _, rank, need, bound = max(found, key=lambda each: each[:2])
    where = f" in {need.pool}" if is_gang(ticket.needs) else ""
    if rank > 1:
        free = fitting(facts, need, moment.at)
        if bound is None:
            text = f"{rank - 1} ahead{where}; {free} free, set aside for them"
            return Binding("set_aside", text)
        return Binding("ahead", f"{rank - 1} ahead{where}; {bound.text}")
    if bound is not None:
        return Binding(bound.code, f"first in line{where}; {bound.text}")
    if (ticket.pull and not is_waited_for(ticket)) or _is_absent(moment, ticket):
        return Binding("poll", "first in line; granted when its client asks again")
    return Binding("next", "first in line; about to be granted")


def _place_text(rank: int) -> str:
    return "first in line" if rank == 1 else f"{rank - 1} ahead"


def _stop_text(stops: Sequence[Instant], at: Instant) -> str:
    """Return the clause on the leases that are asked to stop for a ticket."""
    were = "was" if len(stops) == 1 else "were"
    last = span(max(0, max(stops) - at))
    return f"stopping: {counted(len(stops), 'lease')} {were} asked to stop for it, within {last}"


def _is_absent(moment: Moment, ticket: Lease) -> bool:
    """Does no request wait for a ticket that is passed over meanwhile?"""
    return is_watched(ticket) and is_silent(ticket, moment)


def _aside(facts: Facts, moment: Moment, ticket: Lease, place: Mapping[str, LinePlace]) -> str:
    """Return the clause on free units that are set aside for a gang that is first."""
    if not is_gang(ticket.needs):
        return ""
    text = ""
    for need in ticket.needs:
        free = fitting(facts, need, moment.at)
        units = min(free, need.units)
        if place[need.pool].rank == 1 and units > 0:
            text += f"; {units} of {need.pool} set aside for it"
    return text


def _full(
    facts: Facts, moment: Moment, pool: Pool, evidence: Evidence, need: Need, free: int
) -> Binding:
    limit, at = limit_of(facts, pool), moment.at
    units = f"{pool.occupied} of {counted(limit, 'unit')} of {pool.name}"
    held = f"{units} {are(pool.occupied)} held{held_by(evidence.holders, at)}"
    lacking = f"; {need.units} needed, {max(0, free)} free" if need.units > 1 else ""
    if is_over(pool, limit):
        return Binding("over", f"over the limit: {held}{lacking}")
    coming = rests(facts, pool, at, need.state, need.wanted)
    idle = sum(rest.units for rest in coming)
    if idle and free + idle >= need.units:
        until = min(rest.until for rest in coming)
        freed = f"{counted(idle, 'freed unit')} of {pool.name}"
        text = f"resting: {freed} in cooldown, the first for another {span(until - at)}"
        return Binding("resting", text + lacking)
    if need.wanted:
        return Binding("limit", f"limit: {_taken(facts, need, evidence, at)}{lacking}")
    if pool.spec.limit is None:
        return Binding("limit", f"limit: {held}{_states(facts, pool)}{lacking}")
    return Binding("limit", f"limit: {held}{lacking}")


def _taken(facts: Facts, need: Need, evidence: Evidence, at: Instant) -> str:
    """Return the clause on the slots with the labels that are asked for, and their holders."""
    there = [s for s in facts.slots.get(need.pool, {}).values() if suits(s.labels, need.wanted)]
    held = [slot for slot in there if slot.occupied]
    text = (
        f"{len(held)} of {counted(len(there), 'slot')} of {need.pool} with"
        f" {labels_text(need.wanted)} {are(len(held))} held"
    )
    return text + held_by(holders_of_slots(held, evidence.slotted), at)


def _states(facts: Facts, pool: Pool) -> str:
    """Return the clause on the states of free slots."""
    found: dict[str, int] = {}
    for slot in facts.slots.get(pool.name, {}).values():
        if not slot.occupied:
            state = slot.state if slot.drain is None else "drained"
            found[state] = found.get(state, 0) + 1
    return "".join(f", {count} {state}" for state, count in sorted(found.items()))
