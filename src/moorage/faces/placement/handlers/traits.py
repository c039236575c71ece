"""Traits: the known ones, and those of a provider."""

import asyncio
from collections.abc import Iterable

from moorage.core.clock import Instant
from moorage.core.ledger.search import Catalog
from moorage.faces.placement.input.schemas import TraitsPut
from moorage.faces.placement.order import traits_in_order
from moorage.faces.placement.request import Request, Response, json_answer
from moorage.faces.query_strings.queries import TraitQuery, trait_query
from moorage.faces.query_strings.refusals import ProblemError
from moorage.service.ledger.provider_cases import TraitsDelete, TraitsReplace
from moorage.service.ledger.vocabulary_cases import TraitDelete, TraitEnsure

LISTED_AT_ONCE = 1_000
"""Up to this many custom traits are listed on the event loop: a few milliseconds."""


async def index(request: Request) -> Response:
    """GET /traits."""
    query = trait_query(request.query_string, request.version, request.limits)
    catalog = await request.catalog()
    if len(catalog.traits) <= LISTED_AT_ONCE:
        return _listed(request, catalog, query)
    return await asyncio.to_thread(_listed, request, catalog, query)


def _listed(request: Request, catalog: Catalog, query: TraitQuery) -> Response:
    known = catalog.standard_traits.union(catalog.traits)
    names = [name for name in known if _matches(catalog, name, query)]
    names = traits_in_order(catalog, names) if query.names is None else sorted(names)
    return json_answer({"traits": names}, _modified(request, catalog, names))


async def show(request: Request) -> Response:
    """GET /traits/{name}: 204 if it exists."""
    catalog = await request.catalog()
    name = request.path[0]
    if not catalog.has_trait(name):
        raise ProblemError(404, f"No such trait(s): {name}.")
    return Response(204, modified=_modified(request, catalog, [name]))


async def ensure(request: Request) -> Response:
    """PUT /traits/{name}."""
    trait, made = await request.service.transactor.submit(TraitEnsure(request.path[0]))
    return Response(
        201 if made else 204, modified=trait.created_at, location=f"/traits/{trait.name}"
    )


async def delete(request: Request) -> Response:
    """DELETE /traits/{name}."""
    await request.service.transactor.submit(TraitDelete(request.path[0]))
    return Response(204)


async def provider_index(request: Request) -> Response:
    """GET /resource_providers/{uuid}/traits."""
    record = await request.provider("{0}: {0}")
    catalog = await request.catalog()
    names = traits_in_order(catalog, record.tags.traits)
    return _provider_shown(request, catalog, names, record.provider.generation)


async def provider_replace(request: Request) -> Response:
    """PUT /resource_providers/{uuid}/traits. The body is checked before the provider."""
    body = await request.decode(TraitsPut)
    uuid = (await request.provider()).provider.uuid
    state = await request.service.transactor.submit(
        TraitsReplace(uuid, body.resource_provider_generation, frozenset(body.traits))
    )
    catalog = await request.catalog()
    return _provider_shown(request, catalog, sorted(state.tags.traits), state.generation)


async def provider_delete(request: Request) -> Response:
    """DELETE /resource_providers/{uuid}/traits."""
    uuid = (await request.provider()).provider.uuid
    await request.service.transactor.submit(TraitsDelete(uuid))
    return Response(204)


def _matches(catalog: Catalog, name: str, query: TraitQuery) -> bool:
    return (
        (query.names is None or name in query.names)
        and name.startswith(query.prefix)
        and (query.associated is None or catalog.trait_in_use(name) == query.associated)
    )


def _modified(request: Request, catalog: Catalog, names: Iterable[str]) -> Instant:
    """Return when the newest trait was created (standard ones: when the ledger was), or now."""
    began_at = request.service.index.began_at
    times = [
        catalog.traits[name].created_at if name in catalog.traits else began_at for name in names
    ]
    return max(times, default=request.now())


def _provider_shown(
    request: Request, catalog: Catalog, names: list[str], generation: int
) -> Response:
    shown = {"traits": names, "resource_provider_generation": generation}
    return json_answer(shown, _modified(request, catalog, names))
