"""The OpenAPI document, generated from the operations and the types of `wire`.

Its examples are in `examples.json`, as a real server has answered: `make openapi` records them.
Source: the OpenAPI Specification 3.1.
"""

import asyncio
import inspect
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import datetime
from functools import cache, lru_cache
from http import HTTPStatus
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Raw

from moorage import __version__
from moorage.faces.v1.descriptions import (
    ENUM_DESCRIPTIONS,
    ENUMS,
    PARAMETERS,
    VARIABLES,
)
from moorage.faces.v1.problems import MEDIA_TYPE
from moorage.faces.v1.routing import Handlers, Request, body_optional
from moorage.wire.changes import VALUES
from moorage.wire.dataclass import member
from moorage.wire.operations import feed as operations
from moorage.wire.operations import operations_by_id
from moorage.wire.operations.operation import VARIABLE, Operation
from moorage.wire.problems import Problem

SERVER = b'"url": "/"'
"""The address of the server in the document; the first text of this form."""
COMPONENTS = "#/components/schemas/{name}"
EXAMPLES = Path(__file__).with_name("examples.json")
"""A call of each operation, by its id, and a refusal."""
REFUSAL = "a refusal"
"""The name of the refusal in `EXAMPLES`; no operation can have it."""

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
    "consumers": "Consumers and their allocations.",
    "usages": "How much consumers hold.",
    "import": "Moving the ledger in from another one.",
    "reshapes": "Plans that change the shape of trees, with preview and undo.",
    "ledger-rows": "The rows of the ledger as they are kept.",
    "claims": "Allocations from providers that the server chooses.",
    "find": "Things of all kinds, by a text.",
    "sign-in-links": "Links that sign a browser in.",
    "capacity": "How much of each resource class there is, is used, and is free.",
    "explain": "Why a query finds nothing.",
    "pools": "Named limits.",
    "pool-templates": "What makes pools on demand.",
    "leases": "The right to use units of pools, and the tickets that wait for it.",
    "bookings": "Units of pools that are kept for somebody, or closed, at certain times.",
    "offers": "When units of pools are free.",
    "actions": "Actions of operators that are tried first.",
    "agents": "What machines really have, and whether they are used.",
    "groups": "Groups of agents: defaults, and silence.",
    "reporter-groups": "Reporters that share nodes: who is live, and who owns which node.",
    "reports": "Reports of the nodes that a source such as Ironic has.",
    "watch": "Every committed change.",
    "openapi": "This document.",
}
"""Descriptions of the groups of operations, by the first segment of their paths."""

_SEVERAL = "It may contain slashes, which need not be escaped."


_MAKING = threading.Lock()


@cache
def _made() -> bytes:
    return msgspec.json.format(msgspec.json.encode(_document(operations_by_id())), indent=1) + b"\n"


def document() -> bytes:
    """Return the document as indented JSON. The first call takes a tenth of a second."""
    with _MAKING:  # only once, however many ask at the same time
        return _made()


async def answered(request: Request[None, None]) -> Raw:
    """Return the document, with the prefix that the server is mounted at.

    It is made for the first request, because at the start it would delay every server.
    """
    text = await asyncio.to_thread(document)
    return Raw(_served(request.prefix) if request.prefix else text)


HANDLERS: Handlers = {operations.GET_OPENAPI: answered}


@lru_cache(maxsize=4)
def _served(prefix: str) -> bytes:
    """Return the document as a server below a prefix serves it."""
    return document().replace(SERVER, b'"url": ' + msgspec.json.encode(prefix), 1)


def template_of(path: str) -> str:
    """Return a route's path in OpenAPI's form, which has no variables of several segments."""
    return VARIABLE.sub(r"{\1}", path)


def _document(every: Mapping[str, Operation[Any]]) -> dict[str, Any]:
    types = _types(every.values())
    schemas, components = msgspec.json.schema_components(types, ref_template=COMPONENTS)
    found = dict(zip(map(_key, types), schemas, strict=True))
    _describe_values(components)
    for kind in _dataclasses(types):
        _describe(components[kind.__name__], kind)
    named = {frozenset(get_args(values)): name for name, values in ENUMS.items()}
    components = _with_named_values(components, named)
    found = _with_named_values(found, named)
    components |= {name: _values(name) for name in ENUMS}
    examples: dict[str, dict[str, Any]] = msgspec.json.decode(EXAMPLES.read_bytes())
    paths: dict[str, dict[str, Any]] = {}
    for name, operation in every.items():
        methods = paths.setdefault(template_of(operation.path), {})
        methods[operation.method.lower()] = _described(
            name, operation, found, examples.get(name, {})
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
            "responses": _problems(found[_key(Problem)], examples[REFUSAL]["answer"]),
            "securitySchemes": {
                "token": {"type": "apiKey", "in": "header", "name": "X-Auth-Token"},
                "bearer": {"type": "http", "scheme": "bearer"},
            },
        },
    }


def _types(every: Iterable[Operation[Any]]) -> list[Any]:
    types: dict[str, Any] = {_key(kind): kind for kind in (Problem, *VALUES.values())}
    for one in every:
        for kind in (one.content.body, one.content.answer, *_parameter_types(one).values()):
            if kind is not None:
                types.setdefault(_key(kind), kind)
    return list(types.values())


def _key(kind: Any) -> str:
    return repr(kind)


def _parameter_types(operation: Operation[Any]) -> dict[str, Any]:
    return (
        {} if operation.content.parameters is None else get_type_hints(operation.content.parameters)
    )


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
        _say_times(answered, hint)
        for one in (answered, *answered.get("anyOf", ())):
            if "prefixItems" in one:
                first, *others = one.pop("prefixItems")
                assert all(other == first for other in others), f"{kind.__name__}.{name}"
                one["items"] = first
    schema["properties"] = {member(name): one for name, one in schema["properties"].items()}
    if "required" in schema:
        schema["required"] = [*map(member, schema["required"])]


def _say_times(schema: dict[str, Any], hint: Any) -> None:
    """Add that texts are times, also those in lists."""
    options = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    for one in (schema, *schema.get("anyOf", ())):
        if datetime in options and one.get("type") == "string":
            one["format"] = "date-time"
        for option in options:
            if get_origin(option) is list and "items" in one:
                _say_times(one["items"], *get_args(option))


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


def _described(
    name: str, operation: Operation[Any], schemas: dict[str, Any], example: dict[str, Any]
) -> dict[str, Any]:
    parameters = [*_path_parameters(operation), *_query_parameters(operation, schemas)]
    for one in parameters:
        given = example.get(one["in"], {})
        if one["name"] in given:
            one["example"] = given[one["name"]]
    described: dict[str, Any] = {
        "operationId": name,
        "tags": [_tag(operation)],
        "summary": operation.summary,
        "x-role": operation.access.role,
        "x-scoped-roles": [*operation.access.scopes],
        "security": [] if operation.access.role is None else [{"token": []}, {"bearer": []}],
        "parameters": parameters,
        "responses": {**_answer(operation, schemas, example), **_REFUSALS},
    }
    if operation.content.parameters is not None:
        described["description"] = inspect.getdoc(operation.content.parameters) or ""
    if operation.content.body is not None:
        content: dict[str, Any] = {"schema": schemas[_key(operation.content.body)]}
        if example.get("body") is not None:
            content["example"] = example["body"]
        described["requestBody"] = {
            "required": not body_optional(operation),
            "content": {"application/json": content},
        }
    return described


def _tag(operation: Operation[Any]) -> str:
    return re.split(r"[^\w-]", operation.path.removeprefix("/v1/"), maxsplit=1)[0]


def _path_parameters(operation: Operation[Any]) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": f"{VARIABLES[name]} {_SEVERAL}" if several else VARIABLES[name],
            "schema": {"type": "string"},
        }
        for name, several in VARIABLE.findall(operation.path)
    ]


def _query_parameters(operation: Operation[Any], schemas: dict[str, Any]) -> list[dict[str, Any]]:
    if operation.content.parameters is None:
        return []
    hints = _parameter_types(operation)
    return [
        {
            "name": one.name,
            "in": "query",
            "required": False,
            "description": PARAMETERS[one.name],
            "schema": {**schemas[_key(hints[one.name])], "default": _default(one)},
        }
        for one in fields(operation.content.parameters)
    ]


def _default(one: Field[Any]) -> Any:
    return one.default if one.default_factory is MISSING else one.default_factory()


def _answer(
    operation: Operation[Any], schemas: dict[str, Any], example: dict[str, Any]
) -> dict[str, Any]:
    if operation.content.answer is None:
        return {"204": {"description": HTTPStatus.NO_CONTENT.phrase}}
    found: dict[str, Any] = {}
    for status in (operation.content.status, *operation.content.also):
        content: dict[str, Any] = {
            media: {
                "schema": schemas[_key(operation.content.answer)]
                if number == 0
                else {"type": "string"}
            }
            for number, media in enumerate(operation.content.media)
        }
        if example.get("status") == status:
            content[operation.content.media[0]]["example"] = example["answer"]
        found[str(status)] = {"description": HTTPStatus(status).phrase, "content": content}
    return found


_REFUSALS = {
    "4XX": {"$ref": "#/components/responses/Refused"},
    "default": {"$ref": "#/components/responses/Failed"},
}


def _problems(schema: dict[str, Any], example: dict[str, Any]) -> dict[str, Any]:
    content = {MEDIA_TYPE: {"schema": schema, "example": example}}
    return {
        "Refused": {
            "description": "The request was refused and has changed nothing.",
            "content": content,
        },
        "Failed": {
            "description": "The server cannot answer now, or has failed.",
            "content": {MEDIA_TYPE: {"schema": schema}},
        },
    }
