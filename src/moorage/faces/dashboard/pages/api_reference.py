"""The native API for people: all operations, searched and one by one, with real examples.

Everything is from the OpenAPI description, which the native API answers.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, urlencode

from moorage.faces.dashboard.routing import ROOT, Page, PageRequest
from moorage.faces.web import RefusalError
from moorage.wire.operations.admin import WHOAMI
from moorage.wire.operations.feed import GET_OPENAPI

SCHEMAS = "#/components/schemas/"
RESPONSES = "#/components/responses/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One operation of the description."""

    id: str
    method: str
    path: str
    tag: str
    described: Mapping[str, Any]

    @property
    def roles(self) -> str:
        """Who may call it."""
        role = self.described["x-role"]
        return " or ".join([role, *self.described["x-scoped-roles"]]) if role else "anybody"

    def has(self, words: Sequence[str]) -> bool:
        """Return whether all of these words are somewhere in it, in small letters."""
        one = self.described
        names = [parameter["name"] for parameter in one["parameters"]]
        text = [self.id, self.method, self.path, one["summary"], one.get("description", ""), *names]
        whole = " ".join(text).lower()
        return all(word in whole for word in words)


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A member of an object, or a parameter."""

    name: str
    type: str
    types: tuple[str, ...]
    """The named types in it."""
    required: bool
    default: str
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A named type."""

    name: str
    description: Sequence[str]
    """Its paragraphs."""
    members: Sequence[Member]
    values: Sequence[str]


def listed(document: Mapping[str, Any]) -> list[Listed]:
    """Return the operations of a description, in its order."""
    return [
        Listed(
            id=one["operationId"],
            method=method.upper(),
            path=path,
            tag=one["tags"][0],
            described=one,
        )
        for path, methods in document["paths"].items()
        for method, one in methods.items()
    ]


async def show(request: PageRequest) -> Mapping[str, Any]:
    """Return the operations with all words of the question, by group."""
    document = await request.ask(GET_OPENAPI)
    every = listed(document)
    words = request.query.get("q", "").lower().split()
    found = [one for one in every if one.has(words)]
    groups = [
        (tag["name"], tag["description"], [one for one in found if one.tag == tag["name"]])
        for tag in document["tags"]
    ]
    return {
        "groups": [group for group in groups if group[2]],
        "found": len(found),
        "all": len(every),
        "description": document["info"]["description"],
    }


async def show_one(request: PageRequest) -> Mapping[str, Any]:
    """Return one operation with its types and examples. Raises RefusalError: 404."""
    document = await request.ask(GET_OPENAPI)
    name = request.variables["operation"]
    operation = next((one for one in listed(document) if one.id == name), None)
    if operation is None:
        raise RefusalError(HTTPStatus.NOT_FOUND, f"The native API has no operation {name}.")
    one, components = operation.described, document["components"]
    body = one.get("requestBody", {}).get("content", {}).get("application/json")
    answers = [answer for answer in one["responses"].items() if answer[0].isdigit()]
    media = [
        (status, HTTPStatus(int(status)).phrase, answer.get("content", {}))
        for status, answer in answers
    ]
    schemas = [content["schema"] for _, _, each in media for content in each.values()]
    roots = [each["schema"] for each in one["parameters"]]
    roots += [body["schema"], *schemas] if body else schemas
    refused = components["responses"][one["responses"]["4XX"]["$ref"].removeprefix(RESPONSES)]
    (problem,) = refused["content"].values()
    return {
        "title": f"{operation.method} {operation.path}",
        "operation": operation,
        "description": paragraphs(one.get("description", "")),
        "parameters": [_parameter(each) for each in one["parameters"]],
        "body": type_text(body["schema"]) if body else "",
        "answers": [
            (status, phrase, [(kind, type_text(each["schema"])) for kind, each in content.items()])
            for status, phrase, content in media
        ],
        "asked": asked(operation, body),
        "answered": answered(media),
        "refused": pretty(problem["example"]),
        "refusal": refused["description"],
        "shapes": [*shapes(roots, components["schemas"])],
    }


def _parameter(described: Mapping[str, Any]) -> Member:
    schema = described["schema"]
    return Member(
        name=described["name"],
        type=f"{type_text(schema)}, in the {described['in']}",
        types=tuple(named(schema)),
        required=described["required"],
        default=_default(schema),
        description=described["description"],
    )


def _default(schema: Mapping[str, Any]) -> str:
    return json.dumps(schema["default"]) if "default" in schema else ""


def asked(operation: Listed, body: Mapping[str, Any] | None) -> list[str]:
    """Return the lines of the example's request, without the headers that clients add."""
    path, query = operation.path, []
    for one in operation.described["parameters"]:
        if "example" not in one:
            continue
        value = one["example"]
        if one["in"] == "path":
            path = path.replace(f"{{{one['name']}}}", quote(value, safe="/"))
        else:
            query.append((one["name"], json.dumps(value) if value in (True, False) else value))
    lines = [f"{operation.method} {path}{'?' if query else ''}{urlencode(query)}"]
    if operation.described["security"]:
        lines.append("X-Auth-Token: TOKEN")
    if body is not None and "example" in body:
        lines += ["Content-Type: application/json", "", *pretty(body["example"])]
    return lines


def answered(media: Sequence[tuple[str, str, Mapping[str, Any]]]) -> list[str]:
    """Return the lines of the example's answer; empty: there is none."""
    for status, phrase, content in media:
        if not content:
            return [f"{status} {phrase}"]
        for one in content.values():
            if "example" in one:
                return [f"{status} {phrase}", "", *pretty(one["example"])]
    return []


def pretty(value: Any) -> list[str]:
    """Return the lines of a value as JSON. Pages show no character that ends a line."""
    return json.dumps(value, indent=2, ensure_ascii=False).split("\n")


def paragraphs(text: str) -> list[str]:
    """Return the paragraphs of a docstring, each in one line."""
    return [" ".join(one.split()) for one in text.split("\n\n") if one]


def type_text(schema: Mapping[str, Any]) -> str:
    """Return a schema in a few words, such as `list of Lease`."""
    if "$ref" in schema:
        return str(schema["$ref"]).removeprefix(SCHEMAS)
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(map(type_text, schema["anyOf"])))
    if "enum" in schema:
        return " or ".join(map(json.dumps, schema["enum"]))
    kind = schema.get("type", "any value")
    if kind == "array":
        return f"list of {type_text(schema.get('items', {}))}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), Mapping):
        return f"map of {type_text(schema['additionalProperties'])}"
    return str(schema.get("format", kind))


def named(schema: Any) -> Iterator[str]:
    """Yield the named types in a schema, in its order."""
    if isinstance(schema, Mapping):
        if "$ref" in schema:
            yield str(schema["$ref"]).removeprefix(SCHEMAS)
        for one in schema.values():
            yield from named(one)
    elif isinstance(schema, list):
        for one in schema:
            yield from named(one)


def shapes(roots: Sequence[Any], schemas: Mapping[str, Any]) -> Iterator[Shape]:
    """Yield the named types of these schemas, and those in them, each once."""
    rest, seen = [name for root in roots for name in named(root)], set()
    while rest:
        name = rest.pop(0)
        if name in seen:
            continue
        seen.add(name)
        schema = schemas[name]
        rest += named(schema)
        required = schema.get("required", ())
        yield Shape(
            name=name,
            description=paragraphs(schema.get("description", "")),
            members=[
                Member(
                    name=member,
                    type=type_text(one),
                    types=tuple(named(one)),
                    required=member in required,
                    default=_default(one),
                    description="",
                )
                for member, one in schema.get("properties", {}).items()
            ],
            values=schema.get("enum", ()),
        )


ENTRIES = (
    Page(
        path=f"{ROOT}/api",
        title="API",
        template="api/list.html",
        show=show,
        live=False,
        needs=WHOAMI,
    ),
    Page(
        path=f"{ROOT}/api/{{operation}}",
        title="API",
        template="api/one.html",
        show=show_one,
        live=False,
        needs=WHOAMI,
    ),
)
