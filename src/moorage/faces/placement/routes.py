"""The table of routes: address, handler, microversions, policy rule and checks of each."""

from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

from moorage.core.errors import Code
from moorage.faces.placement.handlers import (
    aggregates,
    allocations,
    inventories,
    providers,
    reshaper,
    resource_classes,
    root,
    traits,
    usages,
)
from moorage.faces.placement.handlers.candidates import Candidates
from moorage.faces.placement.microversion import LATEST
from moorage.faces.placement.problems import (
    CONCURRENT_UPDATE,
    GENERATION_CHANGED,
    INVENTORY_IN_USE,
    PROVIDER_NOT_FOUND,
    WireProblem,
)
from moorage.faces.placement.request import Request, Response

Handler = Callable[[Request], Awaitable[Response]]


class Route(NamedTuple):
    """One method at one address, for a range of microversions."""

    method: str
    path: str
    handler: Handler
    rule: str = ""
    """Policy rule without its prefix; empty: no policy check."""
    since: int = 0
    until: int = LATEST
    content: bool = False
    """Whether it needs a JSON body."""
    accept: bool = False
    """Whether the client must accept JSON."""
    too_old: int = 404
    """Status below its first microversion."""
    content_first: bool = False
    """Whether the content type is checked before the microversion."""
    bulk: bool = False
    """Whether the limit of bulk bodies applies."""
    exceptions: Mapping[Code, WireProblem] = {}
    """Deviations from the table of outcomes."""


_RP = "resource_providers"
_ONE = f"/{_RP}/{{uuid}}"

_NOT_CREATED = "Unable to create inventory for resource provider {}: "
_NOT_UPDATED = "Unable to update inventory for resource provider {}: "
_NOT_DELETED = "Unable to delete inventory of class {1}: "
_NONE_TO_DELETE = "No inventory of class {1} found for delete: "
_NO_RECORD = "No inventory record with resource class for resource provider {}: "
_UNKNOWN_CLASS = "Unknown resource class in inventory for resource provider {}: "
_NOT_ALLOCATED = "Unable to allocate inventory for consumer {}: "
_NONE_ALLOCATED = "Unable to allocate inventory "
_CLASS_NOT_DELETED = "Error in delete resource class: "
_INVENTORY_CHANGED = {
    Code.PROVIDER_GENERATION: WireProblem(
        409, CONCURRENT_UPDATE, message="resource provider generation conflict"
    ),
    Code.INVALID: WireProblem(400, prefix=_NOT_UPDATED),
}
_TAGS_CHANGED = {
    Code.PROVIDER_GENERATION: WireProblem(409, CONCURRENT_UPDATE, message=GENERATION_CHANGED)
}

_PROVIDERS = (
    Route("GET", f"/{_RP}", providers.index, f"{_RP}:list", accept=True),
    Route("POST", f"/{_RP}", providers.create, f"{_RP}:create", content=True),
    Route("GET", _ONE, providers.show, f"{_RP}:show", accept=True),
    Route("DELETE", _ONE, providers.delete, f"{_RP}:delete"),
    Route("PUT", _ONE, providers.update, f"{_RP}:update", content=True),
    Route("GET", f"{_ONE}/usages", usages.provider_index, f"{_RP}:usages", accept=True),
    Route(
        "GET",
        f"{_ONE}/allocations",
        allocations.provider_index,
        f"{_RP}:allocations:list",
        accept=True,
    ),
    Route("GET", f"{_ONE}/aggregates", aggregates.index, f"{_RP}:aggregates:list", 1, accept=True),
    Route(
        "PUT",
        f"{_ONE}/aggregates",
        aggregates.replace,
        f"{_RP}:aggregates:update",
        1,
        content=True,
        content_first=True,
        exceptions=_TAGS_CHANGED,
    ),
    Route("GET", f"{_ONE}/traits", traits.provider_index, f"{_RP}:traits:list", 6, accept=True),
    Route(
        "PUT",
        f"{_ONE}/traits",
        traits.provider_replace,
        f"{_RP}:traits:update",
        6,
        content=True,
        exceptions=_TAGS_CHANGED,
    ),
    Route("DELETE", f"{_ONE}/traits", traits.provider_delete, f"{_RP}:traits:delete", 6),
)

_INVENTORIES = (
    Route("GET", f"{_ONE}/inventories", inventories.index, f"{_RP}:inventories:list", accept=True),
    Route(
        "POST",
        f"{_ONE}/inventories",
        inventories.create,
        f"{_RP}:inventories:create",
        content=True,
        exceptions={
            Code.INVALID: WireProblem(400, prefix=_NOT_CREATED),
            Code.CLASS_UNKNOWN: WireProblem(400, prefix=_NOT_CREATED),
        },
    ),
    Route(
        "PUT",
        f"{_ONE}/inventories",
        inventories.replace,
        f"{_RP}:inventories:update",
        content=True,
        exceptions={
            **_INVENTORY_CHANGED,
            Code.CLASS_UNKNOWN: WireProblem(400, prefix=_UNKNOWN_CLASS),
        },
    ),
    Route(
        "DELETE",
        f"{_ONE}/inventories",
        inventories.delete_all,
        f"{_RP}:inventories:delete",
        5,
        too_old=405,
        exceptions={Code.INVENTORY_IN_USE: WireProblem(409, INVENTORY_IN_USE)},
    ),
    Route(
        "GET",
        f"{_ONE}/inventories/{{resource_class}}",
        inventories.show,
        f"{_RP}:inventories:show",
        accept=True,
    ),
    Route(
        "PUT",
        f"{_ONE}/inventories/{{resource_class}}",
        inventories.update,
        f"{_RP}:inventories:update",
        content=True,
        exceptions={
            **_INVENTORY_CHANGED,
            Code.INVENTORY_UNKNOWN: WireProblem(400, prefix=_NO_RECORD),
        },
    ),
    Route(
        "DELETE",
        f"{_ONE}/inventories/{{resource_class}}",
        inventories.delete,
        f"{_RP}:inventories:delete",
        exceptions={
            Code.INVENTORY_IN_USE: WireProblem(409, CONCURRENT_UPDATE, _NOT_DELETED),
            Code.INVENTORY_NOT_FOUND: WireProblem(404, prefix=_NONE_TO_DELETE),
            Code.CLASS_NOT_FOUND: WireProblem(404, prefix=_NONE_TO_DELETE),
        },
    ),
)

_VOCABULARY = (
    Route(
        "GET", "/resource_classes", resource_classes.index, "resource_classes:list", 2, accept=True
    ),
    Route(
        "POST",
        "/resource_classes",
        resource_classes.create,
        "resource_classes:create",
        2,
        content=True,
    ),
    Route(
        "GET",
        "/resource_classes/{name}",
        resource_classes.show,
        "resource_classes:show",
        2,
        accept=True,
    ),
    Route(
        "PUT",
        "/resource_classes/{name}",
        resource_classes.rename,
        "resource_classes:update",
        2,
        6,
        content=True,
    ),
    Route("PUT", "/resource_classes/{name}", resource_classes.ensure, "resource_classes:update", 7),
    Route(
        "DELETE",
        "/resource_classes/{name}",
        resource_classes.delete,
        "resource_classes:delete",
        2,
        exceptions={
            Code.STANDARD_CLASS: WireProblem(400, prefix=_CLASS_NOT_DELETED),
            Code.CLASS_IN_USE: WireProblem(409, prefix=_CLASS_NOT_DELETED),
        },
    ),
    Route("GET", "/traits", traits.index, "traits:list", 6, accept=True),
    Route("GET", "/traits/{name}", traits.show, "traits:show", 6),
    Route("PUT", "/traits/{name}", traits.ensure, "traits:update", 6),
    Route("DELETE", "/traits/{name}", traits.delete, "traits:delete", 6),
)

_ALLOCATIONS = (
    Route(
        "POST",
        "/allocations",
        allocations.replace_many,
        "allocations:manage",
        13,
        content=True,
        exceptions={Code.CLASS_UNKNOWN: WireProblem(400, prefix=_NONE_ALLOCATED)},
    ),
    Route("GET", "/allocations/{consumer}", allocations.show, "allocations:list", accept=True),
    Route(
        "PUT",
        "/allocations/{consumer}",
        allocations.replace,
        "allocations:update",
        content=True,
        exceptions={Code.CLASS_UNKNOWN: WireProblem(400, prefix=_NOT_ALLOCATED)},
    ),
    Route("DELETE", "/allocations/{consumer}", allocations.delete, "allocations:delete"),
    Route("GET", "/usages", usages.index, "usages", 9, accept=True),
    Route(
        "POST",
        "/reshaper",
        reshaper.reshape,
        "reshaper:reshape",
        30,
        content=True,
        bulk=True,
        exceptions={
            Code.PROVIDER_NOT_FOUND: WireProblem(400, PROVIDER_NOT_FOUND),
            Code.CLASS_UNKNOWN: WireProblem(400, prefix="malformed reshaper data: "),
        },
    ),
)


def routes() -> tuple[Route, ...]:
    """Return all routes, with a new cache of provider summaries."""
    return (
        Route("GET", "/", root.show),
        *_PROVIDERS,
        *_INVENTORIES,
        *_VOCABULARY,
        *_ALLOCATIONS,
        Route(
            "GET",
            "/allocation_candidates",
            Candidates().index,
            "allocation_candidates:list",
            10,
            accept=True,
        ),
    )


def first_segments() -> frozenset[str]:
    """Return the first segments of all paths."""
    return frozenset(route.path[1:].partition("/")[0] for route in routes()) - {""}


Key = tuple[int, tuple[str, ...]]
"""The number of segments of an address, and its fixed segments."""


Table = dict[Key, dict[str, list[Route]]]
"""The routes of each address, by method."""


def table_of(routes: tuple[Route, ...]) -> Table:
    """Return the table of these routes."""
    table: Table = {}
    for route in routes:
        methods = table.setdefault(address_split(route.path)[0], {})
        methods.setdefault(route.method, []).append(route)
    return table


def address_split(path: str) -> tuple[Key, tuple[str, ...]]:
    """Split an address into its key and its variables.

    In every address of this API, fixed segments and variables alternate. No variable is empty.
    """
    parts = path.split("/")
    return (len(parts), tuple(parts[1::2])), tuple(parts[2::2])
