"""When a ticket is passed over, so that it sets nothing aside. Each rule is defined here once.

A pull ticket is granted only while its client asks for it. A client of Boskos asks again every few
seconds: its ticket is granted when it is polled, and waited for in between. For a ticket of the
native API a request waits, until `heard_until - patience`: meanwhile it is as any other ticket, and
without such a request it is passed over at once.

An attended ticket is one whose client would be missed: its connection is watched. It is present
until `heard_until - patience`, too: while a request waits for it and for `PRESENCE` after that, but
not when its client has disconnected. One that is not present is passed over, until it is polled.
"""

from collections.abc import Iterable
from typing import Literal

from moorage.core.admission.facts import Facts
from moorage.core.admission.model import Lease, Need, Pool
from moorage.core.admission.owners import BOSKOS
from moorage.core.admission.units import most_of
from moorage.core.clock import SECOND, Instant
from moorage.core.service_time import Moment

PULL_SILENCE = 10 * SECOND
"""A client of Boskos that is silent for this long (alive time) does not make others wait. Its polls
do not wait, but come every few seconds."""

PRESENCE = 10 * SECOND
"""How long (alive time) the client of an attended ticket counts as present after its last request,
at most: it is about to ask again."""

PRESENCE_PART = 3
"""It counts as present for at most this part of its patience, so it is withdrawn soon after it."""

SPARE = 5
"""A ticket may outlast its patience by 1/`SPARE` of it."""

Bar = Literal["above_limit", "paused", "quota"]
"""Why a ticket is passed over: it cannot be granted until something changes."""


def bar_of(
    facts: Facts, pool: Pool, owner: str, units: int, granted: int = 0, borrows: bool = True
) -> Bar | None:
    """Return why a ticket is passed over in this pool; None: it is not.

    A ticket that is passed over sets nothing aside: its bar may last for days and does not concern
    the tickets behind it. It keeps its rank, and is ahead of them again once the bar is gone.

    Args:
        facts: as before this scan.
        pool: a pool that the ticket needs.
        owner: of the ticket, which must not be forced; a forced one is never passed over.
        units: that the ticket needs from the pool.
        granted: units of the pool granted to its owner in this scan.
        borrows: the ticket may borrow units of the pool's cohort: it has no allocations.
    """
    if pool.paused:
        return "paused"
    if units > most_of(facts, pool, borrows):
        return "above_limit"
    if pool.spec.quota is None:
        return None
    quota = quota_left(facts, pool, owner)
    if quota is not None and units + granted > quota:
        return "quota"
    return None


def lacking_labels(facts: Facts, needs: Iterable[Need]) -> Need | None:
    """Return the need for which its pool has too few slots with the labels, at all.

    Such a ticket is passed over until slots are added or labelled, unless it is forced.
    """
    for need in needs:
        known = need.wanted and need.pool in facts.pools
        if known and need.units > facts.grantable(need.pool, need.wanted):
            return need
    return None


def quota_left(facts: Facts, pool: Pool, owner: str) -> int | None:
    """Return how many more units an owner may occupy; None: there is no quota.

    Negative if the quota was lowered, or units were forced.
    """
    if pool.spec.quota is None:
        return None
    return pool.spec.quota - facts.held.get((pool.name, owner), 0)


def room_of(facts: Facts, pool: Pool) -> tuple[int, dict[str, int]]:
    """Return the most units a ticket may need without a `Bar`, and the owners for whom it is less.

    So a line can be read without the tickets that are passed over anyway.
    """
    most = most_of(facts, pool)
    if pool.spec.quota is None:
        return most, {}
    most = min(most, pool.spec.quota)
    owners = {owner for name, owner in facts.held if name == pool.name}
    left = {owner: quota_left(facts, pool, owner) or 0 for owner in owners}
    return most, {owner: units for owner, units in left.items() if units < most}


def is_waited_for(ticket: Lease) -> bool:
    """Is this a pull ticket for which requests wait, as those of the native API do?"""
    return ticket.pull and not ticket.owner.startswith(BOSKOS)


def is_watched(ticket: Lease) -> bool:
    """Does `heard_until - patience` say until when a ticket is not passed over?"""
    return is_waited_for(ticket) or (ticket.attended and not ticket.pull)


def presence_of(patience: int) -> int:
    """Return how long the client of an attended ticket counts as present after its last request."""
    return min(PRESENCE, patience // PRESENCE_PART)


def waits_until(moment: Moment, wait: int, patience: int, *, pull: bool, attended: bool) -> Instant:
    """Return the deadline of a ticket for which a request waits from now on (microseconds)."""
    presence = presence_of(patience) if attended and not pull and wait else 0
    return Instant(moment.alive + wait + patience + presence)


def silence_of(owner: str) -> int:
    """Return how long after its last poll an owner's pull ticket is still waited for.

    Not at all if requests wait for it: it is granted only while one does.
    """
    return PULL_SILENCE if owner.startswith(BOSKOS) else 0


def silence_ends(ticket: Lease, silence: int | None = None) -> int | None:
    """Return the alive time from which a ticket is passed over unless it is polled; None: never.

    `heard_until - patience` is the end of its last poll, or of the wait of that; for a client of
    Boskos it may be later, see `lives_on`. `silence` None: that of its owner.
    """
    if ticket.heard_until is None or not (ticket.pull or ticket.attended):
        return None
    silence = silence_of(ticket.owner) if silence is None else silence
    return silent_from(ticket.heard_until, ticket.patience, silence)


def silent_from(heard_until: int, patience: int, silence: int) -> int:
    """Return the alive time from which a ticket with this deadline counts as silent."""
    return heard_until - patience + silence


def is_silent(ticket: Lease, moment: Moment, silence: int | None = None) -> bool:
    """Is this ticket passed over because its client does not ask for it now?"""
    return has_ended(moment, silence_ends(ticket, silence))


def has_ended(moment: Moment, ends: int | None) -> bool:
    """Has the time passed that a silent ticket is waited for? `ends` is that of `silence_ends`."""
    return ends is not None and moment.alive > ends


def kept_until(moment: Moment, ticket: Lease) -> Instant:
    """Return the deadline of a ticket that keeps its place, but for which no request waits now."""
    return Instant(moment.alive + ticket.patience - is_waited_for(ticket))


def left_until(moment: Moment, ticket: Lease) -> Instant:
    """Return the deadline of a ticket whose client has disconnected: it keeps its place."""
    return Instant(moment.alive + ticket.patience - is_watched(ticket))


def lives_on(moment: Moment, ticket: Lease) -> Instant | None:
    """Return the deadline that a poll gives a ticket; None: its present one suffices.

    It is somewhat longer than the patience, so that not every poll must be stored: of a client that
    polls ten times within its patience, about every second is. A ticket is never withdrawn before
    its patience is over, and an attended one is present for half of its `presence_of` at least.
    """
    until = kept_until(moment, ticket)
    if ticket.heard_until is None:
        return None
    if is_watched(ticket) and not ticket.pull:
        presence = presence_of(ticket.patience)
        fresh = ticket.heard_until - until >= presence // 2
        return None if fresh else Instant(until + presence)
    if until <= ticket.heard_until:
        return None
    if is_waited_for(ticket):
        return until
    return Instant(until + ticket.patience // SPARE)
