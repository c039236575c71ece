"""The door of the native API: its routes, joined to their handlers."""

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from moorage.faces.v1.database import Database
from moorage.faces.v1.handling import Door
from moorage.faces.v1.problems import problem
from moorage.faces.v1.tokens import Tokens
from moorage.faces.web import Authenticator, Limits, request_id_new
from moorage.service.access import Access
from moorage.service.upkeep import Upkeep


def v1_face(
    access: Access, upkeep: Upkeep, authenticator: Authenticator, limits: Limits
) -> Starlette:
    """Build the face on the parts of a service that it administers."""
    door = Door(authenticator, limits)
    tokens = Tokens(access, door)
    database = Database(upkeep, door)
    return Starlette(
        routes=[
            Route("/v1/tokens", door.admin(tokens.create), methods=["POST"]),
            Route("/v1/tokens", door.admin(tokens.index), methods=["GET"]),
            Route("/v1/tokens/{id}", door.admin(tokens.revoke), methods=["DELETE"]),
            Route("/v1/database/backup", door.admin(database.backup), methods=["POST"]),
            Route("/v1/database/check", door.admin(database.check), methods=["POST"]),
        ],
        exception_handlers={HTTPException: _unrouted},
    )


async def _unrouted(request: Request, error: Exception) -> Response:
    """Refuse an address or method that is not in the table."""
    assert isinstance(error, HTTPException)
    request_id = request_id_new()
    response = problem(error.status_code, "unrouted", error.detail, request_id)
    response.headers["x-openstack-request-id"] = request_id
    for name, value in (error.headers or {}).items():
        response.headers[name] = value
    return response
