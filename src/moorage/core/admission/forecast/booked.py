"""Why bookings keep a ticket waiting, and from when on they let it start."""

from msgspec import Struct

from moorage.core.admission.calendar.booked_pools import BookedPools
from moorage.core.admission.draft import Draft
from moorage.core.admission.facts import Facts
from moorage.core.admission.model import Lease
from moorage.core.counting import span
from moorage.core.service_time import Moment


class BookedBar(Struct, frozen=True):
    """What bookings forbid."""

    text: str
    start: int | None
    """The service time from which on they permit it, if leases end as their holds say; None: they
    never do."""


def booked_bar(facts: Facts, moment: Moment, ticket: Lease) -> BookedBar | None:
    """Return what bookings of its pools keep a ticket waiting for; None: nothing.

    `facts` have the pools with what is spoken for in them.
    """
    pools = BookedPools(Draft(facts, moment, moment.at))
    verdict = pools.judge(ticket, plans=False)
    if verdict in ("fits", "lacks"):
        return None
    if ticket.booking is not None:
        return _own(facts, moment, ticket, pools)
    start, due = pools.starts(ticket), pools.due(ticket)
    name, least = due
    text = f"booked: {name} has no units free for as long as its hold lasts; bookings need them"
    text += f" in {span(least - moment.at)}" if least > moment.at else " now"
    if least > moment.at and ticket.borrow is None:
        text += "; a shorter hold may start sooner"
    return BookedBar(text, start)


def notice_of(lease: Lease) -> str:
    """Return what the holder of a lease should know, for people."""
    if lease.yields_to is None or lease.state != "granted":
        return ""
    return (
        f"Booking {lease.yields_to} needs its units then, so this lease ends at its hold_until,"
        " sooner than it asked for."
    )


def _own(facts: Facts, moment: Moment, ticket: Lease, pools: BookedPools) -> BookedBar:
    """Return why a ticket waits for units of its own booking."""
    start = pools.starts(ticket)
    if start is None:
        return BookedBar("booked: its booking is over", None)
    if start > moment.at:
        return BookedBar(f"booked: its booking begins in {span(start - moment.at)}", start)
    return BookedBar("booked: other leases have the units of its booking", start)
