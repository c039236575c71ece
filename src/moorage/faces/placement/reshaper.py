"""`POST /reshaper`: inventories and the allocations on them move together."""

from typing import Any

from moorage.core.ids import ProviderId
from moorage.core.ledger.inventory import InventorySpec
from moorage.faces.placement import schemas
from moorage.faces.placement.allocations import consumer_requests
from moorage.faces.placement.bodies import invalid
from moorage.faces.placement.request import Answer, Request
from moorage.service.ledger import Reshape

_BODIES: tuple[tuple[int, Any], ...] = (
    (38, schemas.Reshape38),
    (34, schemas.Reshape34),
    (30, schemas.Reshape30),
)


async def reshape(request: Request) -> Answer:
    """POST /reshaper."""
    kind = next(kind for since, kind in _BODIES if request.version >= since)
    body = request.decode(kind)
    inventories: dict[ProviderId, tuple[int, dict[str, InventorySpec]]] = {
        ProviderId(uuid.lower()): (
            given.resource_provider_generation,
            {name: item.spec() for name, item in given.inventories.items()},
        )
        for uuid, given in body.inventories.items()
    }
    if len(inventories) != len(body.inventories):
        raise invalid("a resource provider is named twice, in upper and in lower case")
    await request.service.transactor.submit(
        Reshape(inventories, consumer_requests(body.allocations))
    )
    return Answer(204)
