"""When a ticket is passed over: then it sets nothing aside. Each rule stands here once."""

from typing import Literal

from moorage.core.admission.facts import Facts
from moorage.core.admission.model import SECOND, Lease, Moment, Pool
from moorage.core.admission.units import limit_of
from moorage.core.clock import Instant

PULL_SILENCE = 10 * SECOND
"""A polling client that was not heard of for so long (alive time) keeps nobody else waiting."""

SPARE = 5
"""A ticket waits up to this part of its patience longer than it must."""

Bar = Literal["above_limit", "paused", "quota"]
"""Why a ticket is passed over: it cannot be granted until somebody changes something."""


def bar_of(facts: Facts, pool: Pool, owner: str, units: int, granted: int = 0) -> Bar | None:
    """Return why a ticket is passed over for what it needs of this pool; None: it is not.

    Whoever is passed over sets nothing aside: what bars it may last for days, and is no matter of
    those behind it. Its rank stays; no later ticket is ever before it once the bar is gone.

    Args:
        facts: as before this scan.
        pool: one of those that the ticket needs.
        owner: of the ticket, which is not a forced one; that is never passed over.
        units: that it needs of the pool.
        granted: units of the pool that its owner was granted in this scan.
    """
    if pool.paused:
        return "paused"
    if units > limit_of(facts, pool):
        return "above_limit"
    quota = quota_left(facts, pool, owner)
    if quota is not None and units + granted > quota:
        return "quota"
    return None


def quota_left(facts: Facts, pool: Pool, owner: str) -> int | None:
    """Return how many units an owner may hold yet; None: as many as there are.

    Below 0 if the quota was lowered, or if something was forced.
    """
    if pool.spec.quota is None:
        return None
    return pool.spec.quota - facts.held.get((pool.name, owner), 0)


def room_of(facts: Facts, pool: Pool) -> tuple[int, dict[str, int]]:
    """Return the most units that anybody, and that single owners may want without a `Bar`.

    So that a line can be read without those who are passed over anyway, however many they are.
    """
    most = limit_of(facts, pool)
    if pool.spec.quota is None:
        return most, {}
    most = min(most, pool.spec.quota)
    owners = {owner for name, owner in facts.held if name == pool.name}
    left = {owner: quota_left(facts, pool, owner) or 0 for owner in owners}
    return most, {owner: units for owner, units in left.items() if units < most}


def silence_ends(ticket: Lease, silence: int | None) -> int | None:
    """Return the alive time from which an unpolled pull ticket is passed over; None: never.

    It was last heard of, or to be heard of until, `patience` before its `heard_until` at the
    latest; see `lives_on` for how much before.
    """
    if silence is None or ticket.heard_until is None:
        return None
    return silent_from(ticket.heard_until, ticket.patience, silence)


def silent_from(heard_until: int, patience: int, silence: int = PULL_SILENCE) -> int:
    """Return the alive time from which a ticket with this deadline counts as silent."""
    return heard_until - patience + silence


def is_silent(ticket: Lease, moment: Moment, silence: int | None) -> bool:
    """Is this pull ticket passed over, because its client does not ask any more?"""
    ends = silence_ends(ticket, silence)
    return ends is not None and moment.alive > ends


def lives_on(moment: Moment, ticket: Lease) -> Instant | None:
    """Return the deadline that a sign of life gives a ticket; None: the one that it has will do.

    It lasts somewhat longer than the patience, so that not each sign need be written: of a client
    that polls ten times within its patience every second poll is. It is never withdrawn before its
    patience is over.
    """
    until = moment.alive + ticket.patience
    if ticket.heard_until is None or until <= ticket.heard_until:
        return None
    return Instant(until + ticket.patience // SPARE)
