"""Inventories of a provider: all of them, or one resource class."""

from collections.abc import Mapping
from typing import Any

from moorage.core.ledger.model import Inventory
from moorage.faces.placement.order import classes_in_order
from moorage.faces.placement.problems import ProblemError
from moorage.faces.placement.request import Answer, Request, json_answer
from moorage.faces.placement.schemas import InventoriesPut, InventoryPost, InventoryPut
from moorage.service.ledger import (
    InventoriesDelete,
    InventoriesReplace,
    InventoryCreate,
    InventoryDelete,
    InventoryUpdate,
)

FULL_RESERVE_SINCE = 26


async def index(request: Request) -> Answer:
    """GET /resource_providers/{uuid}/inventories."""
    record = await request.provider("{0} : {0}")
    fleet = await request.fleet()
    held = {name: record.inventories[name] for name in classes_in_order(fleet, record.inventories)}
    return _all_shown(request, record.provider.generation, held)


async def show(request: Request) -> Answer:
    """GET /resource_providers/{uuid}/inventories/{resource_class}."""
    record = await request.provider("{0} : {0}")
    name = request.path[1]
    inventory = record.inventories.get(name)
    if inventory is None:
        raise ProblemError(404, f"No inventory of class {name} for {record.provider.uuid}")
    return _one_shown(record.provider.generation, inventory)


async def create(request: Request) -> Answer:
    """POST /resource_providers/{uuid}/inventories."""
    uuid = (await request.provider()).provider.uuid
    body = request.decode(InventoryPost)
    state = await request.service.transactor.submit(
        InventoryCreate(uuid, body.resource_class, body.spec(), _full_reserve(request))
    )
    answer = _one_shown(
        state.generation, state.inventories[body.resource_class], request.given(), 201
    )
    answer.location = f"/resource_providers/{uuid}/inventories/{body.resource_class}"
    return answer


async def replace(request: Request) -> Answer:
    """PUT /resource_providers/{uuid}/inventories."""
    uuid = (await request.provider()).provider.uuid
    body = request.decode(InventoriesPut)
    specs = {name: item.spec() for name, item in body.inventories.items()}
    state = await request.service.transactor.submit(
        InventoriesReplace(uuid, body.resource_provider_generation, specs, _full_reserve(request))
    )
    stored = {name: state.inventories[name] for name in specs}
    given = request.given()["inventories"]
    return _all_shown(request, state.generation, stored, given)


async def update(request: Request) -> Answer:
    """PUT /resource_providers/{uuid}/inventories/{resource_class}."""
    uuid = (await request.provider()).provider.uuid
    name = request.path[1]
    body = request.decode(InventoryPut)
    state = await request.service.transactor.submit(
        InventoryUpdate(
            uuid, name, body.resource_provider_generation, body.spec(), _full_reserve(request)
        )
    )
    return _one_shown(state.generation, state.inventories[name], request.given())


async def delete(request: Request) -> Answer:
    """DELETE /resource_providers/{uuid}/inventories/{resource_class}."""
    uuid = (await request.provider()).provider.uuid
    await request.service.transactor.submit(InventoryDelete(uuid, request.path[1]))
    return Answer(204)


async def delete_all(request: Request) -> Answer:
    """DELETE /resource_providers/{uuid}/inventories."""
    uuid = (await request.provider()).provider.uuid
    await request.service.transactor.submit(InventoriesDelete(uuid))
    return Answer(204)


def _full_reserve(request: Request) -> bool:
    return request.version >= FULL_RESERVE_SINCE


Given = Mapping[str, Any]
"""Figures of an inventory as a client has just spelled them: 4.0 is not answered with 4."""

_NOTHING: Given = {}


def _shown(inventory: Inventory, given: Given) -> dict[str, Any]:
    shown = {
        "total": inventory.total,
        "reserved": inventory.reserved,
        "min_unit": inventory.min_unit,
        "max_unit": inventory.max_unit,
        "step_size": inventory.step_size,
        "allocation_ratio": inventory.allocation_ratio,
    }
    return {name: given.get(name, value) for name, value in shown.items()}


def _one_shown(
    generation: int, inventory: Inventory, given: Given = _NOTHING, status: int = 200
) -> Answer:
    shown = {**_shown(inventory, given), "resource_provider_generation": generation}
    return json_answer(shown, inventory.updated_at, status)


def _all_shown(
    request: Request,
    generation: int,
    inventories: dict[str, Inventory],
    given: Mapping[str, Given] = _NOTHING,
) -> Answer:
    modified = max((each.updated_at for each in inventories.values()), default=request.now())
    shown = {
        "resource_provider_generation": generation,
        "inventories": {
            name: _shown(each, given.get(name, _NOTHING)) for name, each in inventories.items()
        },
    }
    return json_answer(shown, modified)
