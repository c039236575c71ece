"""The OpenAPI document, generated from the route table and the types of `wire`.

Source: the OpenAPI Specification 3.1.
"""

import inspect
import re
from collections.abc import Iterable, Iterator
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import datetime
from functools import lru_cache
from http import HTTPStatus
from typing import Any, get_args, get_type_hints

import msgspec
from msgspec import Raw

from moorage import __version__
from moorage.faces.path_table import VARIABLE
from moorage.faces.v1.descriptions import (
    ANSWERS,
    BODIES,
    ENUM_DESCRIPTIONS,
    ENUMS,
    OPERATIONS,
    PARAMETERS,
    VARIABLES,
)
from moorage.faces.v1.problems import MEDIA_TYPE
from moorage.faces.v1.routing import Request, Route
from moorage.wire.changes import VALUES
from moorage.wire.problems import Problem

PATH = "/v1/openapi.json"
SERVER = b'"url": "/"'
"""The address of the server in the document; the first text of this form."""
COMPONENTS = "#/components/schemas/{name}"

_DESCRIPTION = (
    "What the Placement API does not cover, and the administration of Moorage. "
    "`x-role` is the lowest role that may call, in the order reader, user, service, operator, "
    "admin. `x-scoped-roles` are roles outside this order that may call within their scope."
)

_TAGS = {
    "tokens": "Access tokens.",
    "whoami": "The caller, and the server.",
    "database": "Backups and checks.",
    "audit": "The audit log.",
    "providers": "Resource providers.",
    "consumers": "Who uses what.",
    "claims": "Allocations from providers that the server chooses.",
    "capacity": "How much of each resource class there is, is used, and is free.",
    "explain": "Why nothing is found.",
    "pools": "Named limits.",
    "leases": "The right to use units of pools, and the tickets that wait for it.",
    "agents": "What machines really have, and whether they are used.",
    "groups": "Groups of agents: defaults, and silence.",
    "reporter-groups": "Reporters that share nodes: who is live, and who owns which node.",
    "reports": "What a source of nodes has.",
    "watch": "Every committed change.",
    "openapi": "This document.",
}
"""Descriptions of the groups of operations, by the first segment of their paths."""

_VERBS = {"page": "list", "index": "list", "read": "get", "answered": "get"}
"""Verbs of operation ids, where they differ from the handler's name."""

_PART = "slot"
"""What a pool has: handlers with it in their names say what the operation is about."""

_SEVERAL = "It may contain slashes, which need not be escaped."


def route_of(routes: Iterable[Route]) -> Route:
    """Return the route that serves the document of these routes and itself."""

    async def answered(request: Request[None, None]) -> Raw:
        return Raw(_served(document, request.prefix)) if request.prefix else Raw(document)

    route = Route(
        method="GET",
        path=PATH,
        role=None,
        summary="Return this document; no token is required.",
        handler=answered,
        answer=dict[str, Any],
    )
    document = encoded([*routes, route])
    return route


@lru_cache(maxsize=4)
def _served(document: bytes, prefix: str) -> bytes:
    """Return the document as a server below a prefix serves it."""
    return document.replace(SERVER, b'"url": ' + msgspec.json.encode(prefix), 1)


def encoded(routes: Iterable[Route]) -> bytes:
    """Return the document of these routes as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(_document(list(routes))), indent=1) + b"\n"


def template_of(path: str) -> str:
    """Return a route's path in OpenAPI's form, which has no variables of several segments."""
    return VARIABLE.sub(r"{\1}", path)


def _document(routes: list[Route]) -> dict[str, Any]:
    types = _types(routes)
    schemas, components = msgspec.json.schema_components(types, ref_template=COMPONENTS)
    found = dict(zip(map(_key, types), schemas, strict=True))
    _describe_values(components)
    for kind in _dataclasses(types):
        _describe(components[kind.__name__], kind)
    named = {frozenset(get_args(values)): name for name, values in ENUMS.items()}
    components = _with_named_values(components, named)
    found = _with_named_values(found, named)
    components |= {name: _values(name) for name in ENUMS}
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(template_of(route.path), {})[route.method.lower()] = _operation(
            route, found
        )
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Moorage",
            "version": __version__,
            "description": _DESCRIPTION,
            "license": {"name": "Apache 2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "tags": [{"name": name, "description": text} for name, text in _TAGS.items()],
        "paths": paths,
        "components": {
            "schemas": dict(sorted(components.items())),
            "securitySchemes": {
                "token": {"type": "apiKey", "in": "header", "name": "X-Auth-Token"},
                "bearer": {"type": "http", "scheme": "bearer"},
            },
        },
    }


def _types(routes: list[Route]) -> list[Any]:
    types: dict[str, Any] = {_key(kind): kind for kind in (Problem, *VALUES.values())}
    for route in routes:
        for kind in (route.body, route.answer, *_parameter_types(route).values()):
            if kind is not None:
                types.setdefault(_key(kind), kind)
    return list(types.values())


def _key(kind: Any) -> str:
    return repr(kind)


def _parameter_types(route: Route) -> dict[str, Any]:
    return {} if route.parameters is None else get_type_hints(route.parameters)


def _dataclasses(types: Iterable[Any]) -> Iterator[Any]:
    """Yield every dataclass that is one of these types or a part of one, once."""
    rest, seen = list(types), set()
    while rest:
        kind = rest.pop()
        rest += get_args(kind)
        if is_dataclass(kind) and kind not in seen:
            seen.add(kind)
            rest += get_type_hints(kind).values()
            yield kind


def _describe(schema: dict[str, Any], kind: Any) -> None:
    """Add what msgspec leaves out of a dataclass's schema, in terms that client generators know.

    Few generators support tuples, so a tuple becomes a list with members of the first one's type.
    """
    schema["description"] = inspect.getdoc(kind) or ""
    for name, hint in get_type_hints(kind).items():
        answered = schema["properties"][name]
        for one in (answered, *answered.get("anyOf", ())):
            if datetime in (hint, *get_args(hint)) and one.get("type") == "string":
                one["format"] = "date-time"
            if "prefixItems" in one:
                first, *others = one.pop("prefixItems")
                assert all(other == first for other in others), f"{kind.__name__}.{name}"
                one["items"] = first


def _describe_values(components: dict[str, Any]) -> None:
    """Describe the possible types of a change's value, which depend on its kind."""
    named = sorted({kind.__name__ for kind in VALUES.values() if kind is not str})
    components["Change"]["properties"]["kind"]["enum"] = list(VALUES)
    components["Change"]["properties"]["value"] = {
        "anyOf": [
            *({"$ref": COMPONENTS.format(name=name)} for name in named),
            {"type": "string"},
            {"type": "null"},
        ]
    }


def _values(name: str) -> dict[str, Any]:
    """Return the schema of values that are one of a few."""
    values = list(get_args(ENUMS[name]))
    return {"type": "string", "enum": values, "description": ENUM_DESCRIPTIONS[name]}


def _with_named_values(part: Any, named: dict[frozenset[str], str]) -> Any:
    """Return a part of the document with references to the schemas of `ENUMS`.

    Otherwise generators make one type for each use, and their values cannot be compared.
    """
    if isinstance(part, list):
        return [_with_named_values(one, named) for one in part]
    if not isinstance(part, dict):
        return part
    values = part.get("enum")
    if isinstance(values, list) and (name := named.get(frozenset(values))) is not None:
        others = {key: one for key, one in part.items() if key not in ("enum", "type")}
        return {"$ref": COMPONENTS.format(name=name), **others}
    changed = {key: _with_named_values(one, named) for key, one in part.items()}
    return {"type": "string", **changed} if isinstance(values, list) else changed


def _operation(route: Route, schemas: dict[str, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": _operation_id(route),
        "tags": [_tag(route)],
        "summary": route.summary,
        "x-role": None if route.role is None else route.role.value,
        "x-scoped-roles": [role.value for role in route.scopes],
        "security": [] if route.role is None else [{"token": []}, {"bearer": []}],
        "parameters": [*_path_parameters(route), *_query_parameters(route, schemas)],
        "responses": {**_answer(route, schemas), "default": _problem(schemas)},
    }
    if route.parameters is not None:
        operation["description"] = inspect.getdoc(route.parameters) or ""
    if route.body is not None:
        example = BODIES[route.body.__name__]
        content = {"application/json": {"schema": schemas[_key(route.body)], "example": example}}
        operation["requestBody"] = {"required": not route.body_optional, "content": content}
    return operation


def _tag(route: Route) -> str:
    return re.split(r"[^\w-]", route.path.removeprefix("/v1/"), maxsplit=1)[0]


def _operation_id(route: Route) -> str:
    """Return the operation's name in generated clients: `create_pool`, `list_leases`, `watch`."""
    tag, name = _tag(route).replace("-", "_"), route.handler.__name__
    if tag not in name and _PART not in name:
        verb = _VERBS.get(name, name)
        several = verb == "list" or route.bulk
        name = f"{verb}_{tag if several else tag.removesuffix('s')}"
    return OPERATIONS.get(name, name)


def _path_parameters(route: Route) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": f"{VARIABLES[name]} {_SEVERAL}" if several else VARIABLES[name],
            "schema": {"type": "string"},
        }
        for name, several in VARIABLE.findall(route.path)
    ]


def _query_parameters(route: Route, schemas: dict[str, Any]) -> list[dict[str, Any]]:
    if route.parameters is None:
        return []
    hints = _parameter_types(route)
    return [
        {
            "name": one.name,
            "in": "query",
            "required": False,
            "description": PARAMETERS[one.name],
            "schema": {**schemas[_key(hints[one.name])], "default": _default(one)},
        }
        for one in fields(route.parameters)
    ]


def _default(one: Field[Any]) -> Any:
    return one.default if one.default_factory is MISSING else one.default_factory()


def _answer(route: Route, schemas: dict[str, Any]) -> dict[str, Any]:
    if route.answer is None:
        return {"204": {"description": HTTPStatus.NO_CONTENT.phrase}}
    content: dict[str, Any] = {
        media: {"schema": schemas[_key(route.answer)] if number == 0 else {"type": "string"}}
        for number, media in enumerate(route.media)
    }
    if (example := ANSWERS.get(getattr(route.answer, "__name__", ""))) is not None:
        content[route.media[0]]["example"] = example
    return {
        str(status): {"description": HTTPStatus(status).phrase, "content": content}
        for status in (route.status, *route.also)
    }


def _problem(schemas: dict[str, Any]) -> dict[str, Any]:
    content = {MEDIA_TYPE: {"schema": schemas[_key(Problem)], "example": ANSWERS["Problem"]}}
    return {"description": "The request was refused and has changed nothing.", "content": content}
