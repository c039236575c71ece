"""The routes of all operations, with the handlers of the modules that hold them."""

from moorage.faces.v1 import acting, admin, finding, openapi, watch
from moorage.faces.v1.admission import (
    bookings,
    boskos,
    handing,
    leases,
    past,
    pools,
    slots,
    templates,
)
from moorage.faces.v1.fleet import agents, groups, reporters
from moorage.faces.v1.ledger import (
    capacity,
    claims,
    consumers,
    explain,
    imports,
    providers,
    reshapes,
    usages,
)
from moorage.faces.v1.routing import Handlers, route_of
from moorage.wire.operations import operations_by_id

HANDLERS: Handlers = {
    operation: handler
    for module in (
        admin,
        *(capacity, claims, consumers, explain, imports, providers, reshapes, usages),
        *(bookings, boskos, leases, handing, past, pools, slots, templates, acting),
        *(agents, groups, reporters),
        *(finding, openapi, watch),
    )
    for operation, handler in module.HANDLERS.items()
}

ROUTES = tuple(
    route_of(one, HANDLERS[one], agents.PROMPTS.get(one)) for one in operations_by_id().values()
)
"""All routes, in the order of the description; of two paths that match, the first one counts."""
