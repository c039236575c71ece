"""`POST /reshaper`: moves inventories together with the allocations on them."""

from typing import Any

from moorage.core.ids import ProviderId
from moorage.core.ledger.inventory import InventorySpec
from moorage.faces.json_decoding import PIECE_BYTES, decoded
from moorage.faces.placement.handlers.allocations import consumer_requests
from moorage.faces.placement.input import schemas
from moorage.faces.placement.input.bodies import (
    body_decode,
    body_value,
    long_check,
    named_twice,
)
from moorage.faces.placement.request import Request, Response
from moorage.service.ledger.allocation_cases import Reshape

_BODIES: tuple[tuple[int, Any], ...] = (
    (38, schemas.Reshape38),
    (34, schemas.Reshape34),
    (30, schemas.Reshape30),
)


async def reshape(request: Request) -> Response:
    """POST /reshaper."""
    kind = next(kind for since, kind in _BODIES if request.version >= since)
    wanted = await decoded(request.body, lambda: _decoded(request, kind))
    try:
        await request.service.transactor.submit(wanted)
    finally:
        await decoded(request.body, lambda: _forget(wanted))
    return Response(204)


def _forget(wanted: Reshape) -> None:
    """Free many values in small steps, in a thread: freeing all at once would block the process."""
    while wanted.requests:
        del wanted.requests[-1_000:]


def _decoded(request: Request, kind: Any) -> Reshape:
    if len(request.body) > PIECE_BYTES:
        body = long_check(body_value(request.body), kind, ("inventories", "allocations"))
    else:
        body = body_decode(request.body, kind)
    inventories: dict[ProviderId, tuple[int, dict[str, InventorySpec]]] = {
        ProviderId(uuid.lower()): (
            given.resource_provider_generation,
            {name: item.spec() for name, item in given.inventories.items()},
        )
        for uuid, given in body.inventories.items()
    }
    if len(inventories) != len(body.inventories):
        raise named_twice()
    return Reshape(inventories, consumer_requests(body.allocations))
