"""The table of all routes, joined from the modules that hold the handlers."""

from moorage.faces.v1 import database, tokens, watch

ROUTES = (*tokens.ROUTES, *database.ROUTES, *watch.ROUTES)
