"""The slots of pools as resources of Boskos: taken over from it, and listed for it.

Before the routes of pools, whose `{name+}` would match these, too.
"""

from functools import partial

from moorage.core.admission.compat.boskos_import import Resource
from moorage.core.admission.model import Slot
from moorage.faces.json_decoding import decoded
from moorage.faces.v1.decoding import body_decode
from moorage.faces.v1.routing import Handlers, Request
from moorage.service.compat.boskos_cases import ImportResources
from moorage.service.ids import lease_id_new
from moorage.service.values import instant_of, time_of, time_or_none
from moorage.wire.operations import pools as operations
from moorage.wire.pages import PageAsked
from moorage.wire.pools import boskos as wire


async def list_resources(request: Request[None, PageAsked]) -> wire.BoskosResourcePage:
    """Return a page of slots as resources, by name."""
    asked, name = request.parameters, request.variables["name"]
    found, following = await request.service.admission.slots.page(name, asked.cursor, asked.limit)
    return wire.BoskosResourcePage(
        resources=[_resource_shown(view.slot) for view in found], next=following
    )


async def import_resources(request: Request[bytes, None]) -> wire.BoskosOutcomes:
    """Give slots what Boskos says of its resources."""
    decode = partial(body_decode, request.body, wire.BoskosResourcesWanted)
    wanted: wire.BoskosResourcesWanted = await decoded(request.body, decode)
    resources = [_resource(one) for one in wanted.resources]
    fresh = [lease_id_new() for _ in resources]
    case = ImportResources(request.variables["name"], resources, fresh, request.actor)
    outcomes = await request.service.transactor.submit(case)
    return wire.BoskosOutcomes(
        outcomes=[
            wire.BoskosOutcome(name=name, outcome=found, reason=outcomes.reasons.get(name, ""))
            for name, found in sorted(outcomes.found.items())
        ]
    )


def _resource(one: wire.BoskosResource) -> Resource:
    return Resource(
        one.name,
        one.state,
        one.owner,
        one.user_data,
        instant_of("updated_at", one.updated_at),
        None if one.expires_at is None else instant_of("expires_at", one.expires_at),
    )


def _resource_shown(slot: Slot) -> wire.BoskosResource:
    return wire.BoskosResource(
        name=slot.name,
        state=slot.state,
        owner=slot.owner,
        user_data=slot.user_data,
        updated_at=time_of(slot.updated_at),
        expires_at=time_or_none(slot.expires_at),
    )


HANDLERS: Handlers = {
    operations.LIST_BOSKOS_RESOURCES: list_resources,
    operations.IMPORT_BOSKOS_RESOURCES: import_resources,
}
