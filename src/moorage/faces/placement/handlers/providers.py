"""Resource providers: list, show, create, rename, move, delete."""

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from msgspec import UNSET

from moorage.core.clock import Instant
from moorage.core.errors import Code, Error
from moorage.core.ids import ProviderId
from moorage.core.ledger.model import Provider, ProviderRecord
from moorage.core.ledger.search import providers_in_order
from moorage.faces.long_answers import REFERENCE_BYTES
from moorage.faces.placement.input.schemas import (
    ProviderPost,
    ProviderPost14,
    ProviderPut,
    ProviderPut14,
)
from moorage.faces.placement.problems import DUPLICATE_NAME, WireProblem, problem_of
from moorage.faces.placement.request import (
    NEVER,
    Request,
    Response,
    json_answer,
    members_json,
    pieces_of,
)
from moorage.faces.query_strings.queries import provider_query
from moorage.faces.query_strings.uuids import uuid_normal
from moorage.service.ledger.provider_cases import ProviderCreate, ProviderDelete, ProviderUpdate

TREE_SINCE = 14
BODY_SINCE = 20
FREE_MOVE_SINCE = 37

_CREATION = 'Unable to create resource provider "{}", {}: Object action create failed because: '
_SAVING = "Unable to save resource provider {1}: Object action update failed because: "
_NO_PARENT = "parent provider UUID does not exist."
_LOOP = "creating loop in the provider tree is not allowed."

_NOT_CREATED = {
    Code.INVALID: WireProblem(400, prefix=_CREATION),
    Code.PARENT_UNKNOWN: WireProblem(400, prefix=_CREATION, message=_NO_PARENT),
}
_NOT_SAVED = {
    Code.INVALID: WireProblem(400, prefix=_SAVING),
    Code.REPARENT_REFUSED: WireProblem(400, prefix=_SAVING),
    Code.TREE_LOOP: WireProblem(400, prefix=_SAVING, message=_LOOP),
    # The original's message says "create" here, too.
    Code.PARENT_UNKNOWN: WireProblem(
        400, prefix=_SAVING.replace("update", "create"), message=_NO_PARENT
    ),
    Code.DUPLICATE_PROVIDER: WireProblem(
        409, DUPLICATE_NAME, message="Conflicting resource provider {} already exists."
    ),
}
"""Outcomes whose texts have braces for the provider's name (from the body) and its UUID."""

_RELATIONS = (
    ("inventories", 0),
    ("usages", 0),
    ("aggregates", 1),
    ("traits", 6),
    ("allocations", 11),
)
"""A provider's links, with the first microversion that has them."""


async def index(request: Request) -> Response:
    """GET /resource_providers."""
    question = provider_query(request.query_string, request.version, request.limits)
    catalog = await request.catalog()
    question.vocabulary.check(catalog, 'Invalid trait(s) in "required" parameter: ')
    found = await request.service.searches.reading(providers_in_order(catalog, question.query))
    modified = max((record.provider.updated_at for record in found), default=request.now())

    def write(records: Sequence[ProviderRecord]) -> bytes:
        return members_json([_shown(record.provider, request) for record in records])

    pieces = pieces_of(b'{"resource_providers":[', found, write, b"]}")
    # The records belong to the catalog: the list only has references.
    written = request.written(pieces, REFERENCE_BYTES * len(found))
    body = await request.service.turns.driven(written)
    return Response(200, body, modified)


async def show(request: Request) -> Response:
    """GET /resource_providers/{uuid}."""
    record = await request.provider()
    return json_answer(_shown(record.provider, request), _modified(record.provider))


async def create(request: Request) -> Response:
    """POST /resource_providers."""
    body = await request.decode(ProviderPost14 if request.version >= TREE_SINCE else ProviderPost)
    uuid = str(uuid4()) if body.uuid is UNSET else uuid_normal(body.uuid)
    parent = _parent(body)
    try:
        provider = await request.service.transactor.submit(
            ProviderCreate(ProviderId(uuid or ""), body.name, parent)
        )
    except Error as error:
        raise problem_of(error, _NOT_CREATED, (body.name, str(uuid))) from None
    answer = Response(201)
    if request.version >= BODY_SINCE:
        answer = json_answer(_shown(provider, request), _modified(provider))
    answer.location = f"/resource_providers/{provider.uuid}"
    return answer


async def update(request: Request) -> Response:
    """PUT /resource_providers/{uuid}."""
    record = await request.provider()
    body = await request.decode(ProviderPut14 if request.version >= TREE_SINCE else ProviderPut)
    change = ProviderUpdate(
        record.provider.uuid,
        body.name,
        move=isinstance(body, ProviderPut14) and body.parent_provider_uuid is not UNSET,
        parent=_parent(body),
        free=request.version >= FREE_MOVE_SINCE,
    )
    try:
        provider = await request.service.transactor.submit(change)
    except Error as error:
        raise problem_of(error, _NOT_SAVED, (body.name, request.path[0])) from None
    return json_answer(_shown(provider, request), _modified_before(record.provider))


async def delete(request: Request) -> Response:
    """DELETE /resource_providers/{uuid}."""
    record = await request.provider("{} for delete")
    await request.service.transactor.submit(ProviderDelete(record.provider.uuid))
    return Response(204)


def _parent(body: ProviderPost | ProviderPut) -> ProviderId | None:
    named = getattr(body, "parent_provider_uuid", None)
    return ProviderId(uuid_normal(named) or named) if isinstance(named, str) else None


def _modified(provider: Provider) -> Instant:
    return provider.updated_at


def _modified_before(provider: Provider) -> Instant:
    """Return the modification time that an update's answer shows: that of the update before it.

    The creation of a root counts as an update, that of a child does not.
    """
    updated = provider.updated_at > provider.created_at
    return provider.updated_at if updated or provider.parent is None else NEVER


def _shown(provider: Provider, request: Request) -> dict[str, Any]:
    url = f"{request.prefix}/resource_providers/{provider.uuid}"
    links = [{"rel": "self", "href": url}]
    links.extend(
        {"rel": relation, "href": f"{url}/{relation}"}
        for relation, since in _RELATIONS
        if request.version >= since
    )
    shown = {
        "uuid": provider.uuid,
        "name": provider.name,
        "generation": provider.generation,
        "links": links,
    }
    if request.version >= TREE_SINCE:
        shown["parent_provider_uuid"] = provider.parent
        shown["root_provider_uuid"] = provider.root
    return shown
