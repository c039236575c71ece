"""Templates of pools that requests make."""

import msgspec

from moorage.core.admission.templates import TemplateWish, not_found
from moorage.core.clock import SECOND
from moorage.faces.v1.routing import Handlers, Request
from moorage.service.admission.pool_specs import spec_of
from moorage.service.admission.template_cases import TemplateDelete, TemplatePut, TemplateView
from moorage.service.feed.change_rows import pool_spec_of
from moorage.service.values import microseconds, time_of
from moorage.wire.changes import PoolSpecValue
from moorage.wire.operations import pools as operations
from moorage.wire.pools import templates as wire


async def page(request: Request[None, None]) -> wire.PoolTemplateList:
    """Return all templates."""
    found = await request.service.admission.queries.templates()
    return wire.PoolTemplateList(templates=[template_shown(one) for one in found])


async def read(request: Request[None, None]) -> wire.PoolTemplate:
    """Return one template. Raises `Error`: TEMPLATE_NOT_FOUND."""
    name = request.variables["name"]
    for one in await request.service.admission.queries.templates():
        if one.template.name == name:
            return template_shown(one)
    raise not_found(name)


async def put(request: Request[wire.PoolTemplateWanted, None]) -> wire.PoolTemplate:
    """Create or update a template."""
    wanted = request.body
    wish = TemplateWish(
        spec_of(wanted.pool),
        microseconds("idle", wanted.idle),
        wanted.pools_max,
        paced=wanted.pool.pacing == "auto",
    )
    case = TemplatePut(request.variables["name"], request.actor, wish, wanted.generation)
    made = await request.service.transactor.submit(case)
    assert made is not None, "it was just put"
    return template_shown(made)


async def delete(request: Request[None, None]) -> None:
    """Delete a template."""
    case = TemplateDelete(request.variables["name"], request.actor)
    await request.service.transactor.submit(case)


HANDLERS: Handlers = {
    operations.LIST_POOL_TEMPLATES: page,
    operations.GET_POOL_TEMPLATE: read,
    operations.PUT_POOL_TEMPLATE: put,
    operations.DELETE_POOL_TEMPLATE: delete,
}


def template_shown(view: TemplateView) -> wire.PoolTemplate:
    """Convert a template to its wire form."""
    template = view.template
    spec = pool_spec_of(msgspec.to_builtins(template.spec))
    return wire.PoolTemplate(
        name=template.name,
        pool=msgspec.convert(spec, PoolSpecValue),
        idle=template.idle / SECOND,
        pools_max=template.pools_max,
        pools=view.pools,
        generation=template.generation,
        created_at=time_of(template.created_at),
        updated_at=time_of(template.updated_at),
    )
