"""What a decision makes of leases and tickets, together with the grants that follow it.

An operator is shown it before the decision is made, and again if it would be another one by then.
Source: docs/decisions/0059-actions-are-tried-first.md.
"""

from collections.abc import Iterator

from msgspec import Struct

from moorage.core.admission.facts import Changes
from moorage.core.admission.model import Lease
from moorage.core.counting import counted
from moorage.core.ids import LeaseId
from moorage.core.service_time import Moment


class Effect(Struct, frozen=True):
    """The leases and tickets that end or start at once, each by its id, sorted."""

    leases_end: tuple[LeaseId, ...] = ()
    tickets_end: tuple[LeaseId, ...] = ()
    tickets_start: tuple[LeaseId, ...] = ()

    def lines(self) -> Iterator[str]:
        """Yield it in sentences for people."""
        for found, noun, verb in (
            (self.leases_end, "lease", "end"),
            (self.tickets_end, "ticket", "end"),
            (self.tickets_start, "ticket", "start"),
        ):
            if found:
                yield f"{counted(len(found), noun)} {verb}{'s' if len(found) == 1 else ''}."
        if not (self.leases_end or self.tickets_end or self.tickets_start):
            yield "No lease ends, and no ticket starts at once."


def effect_of(made: Changes, moment: Moment) -> Effect:
    """Return the effect of a whole batch, before it is saved: a new token has no revision yet.

    Args:
        made: all changes of the batch, with its grants.
        moment: of the batch.
    """
    leases = [lease for _, lease in sorted(made.leases.items()) if lease is not None]
    ended = [one for one in leases if one.state == "ended" and one.ended_at == moment.at]
    return Effect(
        tuple(one.id for one in ended if one.granted_at is not None),
        tuple(one.id for one in ended if one.granted_at is None),
        tuple(one.id for one in leases if _starts(one)),
    )


def _starts(lease: Lease) -> bool:
    return lease.state == "granted" and lease.token is not None and lease.token.revision == 0
