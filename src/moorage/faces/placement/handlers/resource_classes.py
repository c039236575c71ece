"""Resource classes: the standard ones, and those created by clients."""

from typing import Any

from moorage.core.clock import Instant
from moorage.core.ledger.search import Catalog
from moorage.faces.placement.input.bodies import body_check
from moorage.faces.placement.input.schemas import ClassNamed
from moorage.faces.placement.order import classes_in_order
from moorage.faces.placement.request import Request, Response, json_answer
from moorage.faces.query_strings.refusals import ProblemError
from moorage.service.ledger.vocabulary_cases import (
    ClassCreate,
    ClassDelete,
    ClassEnsure,
    ClassRename,
)


async def index(request: Request) -> Response:
    """GET /resource_classes."""
    catalog = await request.catalog()
    names = classes_in_order(catalog, catalog.standard_classes.union(catalog.classes))
    shown = {"resource_classes": [_shown(request, name) for name in names]}
    return json_answer(shown, max(_modified(request, catalog, name) for name in names))


async def show(request: Request) -> Response:
    """GET /resource_classes/{name}."""
    catalog = await request.catalog()
    name = request.path[0]
    if not catalog.has_class(name):
        raise ProblemError(404, f"No such resource class {name}.")
    return json_answer(_shown(request, name), _modified(request, catalog, name))


async def create(request: Request) -> Response:
    """POST /resource_classes."""
    body = await request.decode(ClassNamed)
    made = await request.service.transactor.submit(ClassCreate(body.name))
    return Response(201, location=f"/resource_classes/{made.name}")


async def rename(request: Request) -> Response:
    """PUT /resource_classes/{name} before 1.7."""
    body = await request.decode(ClassNamed)
    renamed = await request.service.transactor.submit(ClassRename(request.path[0], body.name))
    return json_answer(_shown(request, renamed.name))


async def ensure(request: Request) -> Response:
    """PUT /resource_classes/{name}; a body is ignored."""
    name = request.path[0]
    body_check({"name": name}, ClassNamed)
    made = await request.service.transactor.submit(ClassEnsure(name))
    return Response(201 if made else 204, location=f"/resource_classes/{name}")


async def delete(request: Request) -> Response:
    """DELETE /resource_classes/{name}."""
    await request.service.transactor.submit(ClassDelete(request.path[0]))
    return Response(204)


def _shown(request: Request, name: str) -> dict[str, Any]:
    url = f"{request.prefix}/resource_classes/{name}"
    return {"name": name, "links": [{"rel": "self", "href": url}]}


def _modified(request: Request, catalog: Catalog, name: str) -> Instant:
    custom = catalog.classes.get(name)
    return custom.updated_at if custom else request.service.index.began_at
