"""How much of each resource class there is, is used, and is free."""

from collections.abc import Iterable

from moorage.core.errors import Code, Error
from moorage.core.ledger.search.capacity_sums import CapacitySum, Closed, Filled, snapshot, summed
from moorage.core.limits import CAPACITY_ENDS_MAX, CAPACITY_NAMED_MAX, CAPACITY_WITHHELD_MAX
from moorage.faces.v1.routing import Handlers, Request
from moorage.service.feed.watch import Cursor
from moorage.service.pages import check_limit
from moorage.wire.capacity import (
    Capacity,
    CapacityAsked,
    CapacityLine,
    ProviderFilled,
    ProviderWithheld,
)
from moorage.wire.operations import ledger as operations


async def read(request: Request[None, CapacityAsked]) -> Capacity:
    """Return the sums as of one revision; other requests are served while they are computed."""
    asked, service = request.parameters, request.service
    _check(asked)
    catalog = await service.index.current()
    # The event loop does not run in between, so they are of the same revision.
    records, as_of = snapshot(catalog), Cursor(service.index.epoch, service.index.revision)
    providers, closed = len(catalog), Closed(CAPACITY_WITHHELD_MAX)
    sums, left_out = await service.searches.reading(
        summed(records, asked.by, asked.resource_class, asked.ends, asked.limit, closed)
    )
    return Capacity(
        as_of=str(as_of),
        providers=providers,
        lines=[_line(one) for one in sums],
        left_out=left_out,
        withheld=closed.number,
        first_withheld=[
            ProviderWithheld(uuid=uuid, name=name, reason=reason)
            for uuid, name, reason in closed.first
        ],
    )


HANDLERS: Handlers = {
    operations.GET_CAPACITY: read,
}


def _check(asked: CapacityAsked) -> None:
    """Raise Error: INVALID, the answer would be too long."""
    check_limit(asked.limit)
    if not 0 <= asked.ends <= CAPACITY_ENDS_MAX:
        raise Error(Code.INVALID, f"ends must be from 0 to {CAPACITY_ENDS_MAX}.")
    if asked.limit * asked.ends > CAPACITY_NAMED_MAX:
        raise Error(
            Code.INVALID,
            f"limit times ends must be at most {CAPACITY_NAMED_MAX}: ask for fewer lines, or for"
            " fewer providers in each.",
        )


def _line(one: CapacitySum) -> CapacityLine:
    return CapacityLine(
        resource_class=one.resource_class,
        group=one.group or None,
        providers=one.providers,
        total=one.total,
        reserved=one.held_back,
        capacity=one.capacity,
        used=one.used,
        free=one.free,
        fullest=_named(one.fullest),
        emptiest=_named(one.emptiest),
        ratio=one.ratio,
    )


def _named(found: Iterable[Filled]) -> list[ProviderFilled]:
    return [
        ProviderFilled(uuid=one.uuid, name=one.name, used=one.used, capacity=one.capacity)
        for one in found
    ]
