"""The table of all routes, joined from the modules that hold the handlers."""

from moorage.faces.v1 import watch
from moorage.faces.v1.admin import audit, database, tokens, whoami
from moorage.faces.v1.admission import contents, leases, lines, owners, past, pools, slots
from moorage.faces.v1.fleet import agents, groups, machines, reporters, reports
from moorage.faces.v1.ledger import capacity, claims, consumers, explain, provider_pages, providers
from moorage.faces.v1.openapi import route_of
from moorage.faces.v1.routing import Route

HANDLED: tuple[Route, ...] = (
    *tokens.ROUTES,
    *whoami.ROUTES,
    *database.ROUTES,
    *audit.ROUTES,
    *provider_pages.ROUTES,
    *providers.ROUTES,
    *consumers.ROUTES,
    *capacity.ROUTES,
    *claims.ROUTES,
    *explain.ROUTES,
    *slots.ROUTES,
    *contents.ROUTES,
    *past.ROUTES,
    *pools.ROUTES,
    *leases.ROUTES,
    *lines.ROUTES,
    *owners.ROUTES,
    *agents.ROUTES,
    *machines.ROUTES,
    *groups.ROUTES,
    *reporters.ROUTES,
    *reports.ROUTES,
    *watch.ROUTES,
)

ROUTES = (*HANDLED, route_of(HANDLED))
"""All routes, including the one that returns the OpenAPI document."""
