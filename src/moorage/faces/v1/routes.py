"""The table of all routes, joined from the modules that hold the handlers."""

from moorage.faces.v1 import (
    audit,
    claims,
    database,
    explain,
    fleet,
    leases,
    pools,
    providers,
    tokens,
    watch,
)
from moorage.faces.v1.openapi import route_of
from moorage.faces.v1.routing import Route

HANDLED: tuple[Route, ...] = (
    *tokens.ROUTES,
    *database.ROUTES,
    *audit.ROUTES,
    *fleet.ROUTES,
    *providers.ROUTES,
    *claims.ROUTES,
    *explain.ROUTES,
    *pools.ROUTES,
    *leases.ROUTES,
    *watch.ROUTES,
)

ROUTES = (*HANDLED, route_of(HANDLED))
"""All of them, with the one that describes them."""
