"""Inventories of a provider: all of them, or one resource class."""

from typing import Any

from moorage.core.ledger.model import Inventory
from moorage.faces.placement.input.schemas import InventoriesPut, InventoryPost, InventoryPut
from moorage.faces.placement.order import classes_in_order
from moorage.faces.placement.request import NEVER, Request, Response, json_answer
from moorage.faces.query_strings.refusals import ProblemError
from moorage.service.ledger.provider_cases import (
    InventoriesDelete,
    InventoriesReplace,
    InventoryCreate,
    InventoryDelete,
    InventoryUpdate,
)

FULL_RESERVE_SINCE = 26


async def index(request: Request) -> Response:
    """GET /resource_providers/{uuid}/inventories."""
    record = await request.provider("{0} : {0}")
    catalog = await request.catalog()
    held = {
        name: record.inventories[name] for name in classes_in_order(catalog, record.inventories)
    }
    figures = {name: _figures(inventory) for name, inventory in held.items()}
    return _all_shown(record.provider.generation, held, figures)


async def show(request: Request) -> Response:
    """GET /resource_providers/{uuid}/inventories/{resource_class}."""
    record = await request.provider("{0} : {0}")
    name = request.path[1]
    inventory = record.inventories.get(name)
    if inventory is None:
        raise ProblemError(404, f"No inventory of class {name} for {record.provider.uuid}")
    return _one_shown(record.provider.generation, inventory, _figures(inventory))


async def create(request: Request) -> Response:
    """POST /resource_providers/{uuid}/inventories."""
    uuid = (await request.provider()).provider.uuid
    body, sent = await request.decode_both(InventoryPost)
    state = await request.service.transactor.submit(
        InventoryCreate(uuid, body.resource_class, body.spec(), _full_reserve(request))
    )
    stored = state.inventories[body.resource_class]
    answer = _one_shown(state.generation, stored, _echoed(stored, sent), 201)
    answer.location = f"/resource_providers/{uuid}/inventories/{body.resource_class}"
    return answer


async def replace(request: Request) -> Response:
    """PUT /resource_providers/{uuid}/inventories."""
    uuid = (await request.provider()).provider.uuid
    body, sent = await request.decode_both(InventoriesPut)
    specs = {name: item.spec() for name, item in body.inventories.items()}
    state = await request.service.transactor.submit(
        InventoriesReplace(uuid, body.resource_provider_generation, specs, _full_reserve(request))
    )
    stored = {name: state.inventories[name] for name in specs}
    figures = {name: _echoed(each, sent["inventories"][name]) for name, each in stored.items()}
    return _all_shown(state.generation, stored, figures)


async def update(request: Request) -> Response:
    """PUT /resource_providers/{uuid}/inventories/{resource_class}."""
    uuid = (await request.provider()).provider.uuid
    name = request.path[1]
    body, sent = await request.decode_both(InventoryPut)
    state = await request.service.transactor.submit(
        InventoryUpdate(
            uuid, name, body.resource_provider_generation, body.spec(), _full_reserve(request)
        )
    )
    stored = state.inventories[name]
    return _one_shown(state.generation, stored, _echoed(stored, sent))


async def delete(request: Request) -> Response:
    """DELETE /resource_providers/{uuid}/inventories/{resource_class}."""
    uuid = (await request.provider()).provider.uuid
    await request.service.transactor.submit(InventoryDelete(uuid, request.path[1]))
    return Response(204)


async def delete_all(request: Request) -> Response:
    """DELETE /resource_providers/{uuid}/inventories."""
    uuid = (await request.provider()).provider.uuid
    await request.service.transactor.submit(InventoriesDelete(uuid))
    return Response(204)


def _full_reserve(request: Request) -> bool:
    return request.version >= FULL_RESERVE_SINCE


def _figures(inventory: Inventory) -> dict[str, Any]:
    return {
        "total": inventory.total,
        "reserved": inventory.reserved,
        "min_unit": inventory.min_unit,
        "max_unit": inventory.max_unit,
        "step_size": inventory.step_size,
        "allocation_ratio": inventory.allocation_ratio,
    }


def _echoed(inventory: Inventory, sent: dict[str, Any]) -> dict[str, Any]:
    """Return the figures as sent (1 stays 1, not 1.0), and as stored where none were sent."""
    return {name: sent.get(name, figure) for name, figure in _figures(inventory).items()}


def _one_shown(
    generation: int, inventory: Inventory, figures: dict[str, Any], status: int = 200
) -> Response:
    shown = {**figures, "resource_provider_generation": generation}
    return json_answer(shown, inventory.updated_at, status)


def _all_shown(
    generation: int, inventories: dict[str, Inventory], figures: dict[str, dict[str, Any]]
) -> Response:
    modified = max((each.updated_at for each in inventories.values()), default=NEVER)
    shown = {"resource_provider_generation": generation, "inventories": figures}
    return json_answer(shown, modified)
