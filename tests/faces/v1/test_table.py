"""Every route of the table: its input and its description. Permissions: `test_authorization`."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import jsonschema
import pytest

from moorage.core.errors import Code
from moorage.faces.path_table import Table
from moorage.faces.v1 import descriptions, openapi
from moorage.faces.v1.decoding import body_decode, query_decode
from moorage.faces.v1.openapi import template_of
from moorage.faces.v1.problems import STATUSES
from moorage.faces.v1.routes import ROUTES
from moorage.faces.web import RefusalError
from moorage.wire.operations.operation import Access, Content, Operation
from moorage.wire.pages import ChangesAsked
from tests.faces.v1.native import Native


def test_client_generators_can_read_the_description() -> None:
    """The OpenAPI document avoids what generators do not support; operation names are unique.

    `make generators` runs two generators.
    """
    document = json.loads(openapi.document())
    assert not any(word in json.dumps(document) for word in ('"prefixItems"', '"items": false'))
    waiting = document["components"]["schemas"]["Waiting"]
    assert waiting["properties"]["eta_seconds"]["anyOf"][0] == {
        "type": "array",
        "minItems": 2,
        "maxItems": 2,
        "items": {"type": "number"},
    }
    lease = document["components"]["schemas"]["Lease"]["properties"]
    assert lease["state"] == {"$ref": "#/components/schemas/LeaseState"}
    states = document["components"]["schemas"]["LeaseState"]
    assert states["enum"] == ["waiting", "granted", "ended"]
    wanted = document["components"]["schemas"]["PoolWanted"]["properties"]
    assert wanted["on_retry"]["default"] == "keep"
    assert lease["asked_at"]["format"] == "date-time"
    assert {one["format"] for one in lease["ended_at"]["anyOf"] if "format" in one} == {"date-time"}
    operations = [one for methods in document["paths"].values() for one in methods.values()]
    names = [one["operationId"] for one in operations]
    assert len(set(names)) == len(names) == len(ROUTES)
    assert all(re.fullmatch("[a-z]+(_[a-z]+)*", name) for name in names)
    assert {"create_lease", "list_leases", "get_pool", "watch", "explain"} <= {*names}
    assert {tag for one in operations for tag in one["tags"]} == {
        tag["name"] for tag in document["tags"]
    }
    for name, schema in document["components"]["schemas"].items():
        assert schema.get("description"), name
        assert "\n  " not in schema["description"], name
    assert all(one["summary"] for one in operations)
    assert all(query["description"] for one in operations for query in one["parameters"])
    enums = [one for one in _objects(document) if isinstance(one.get("enum"), list)]
    assert {one["type"] for one in enums} == {"string"}


def _objects(part: Any) -> Iterator[dict[str, Any]]:
    """Yield every object of a document."""
    if isinstance(part, dict):
        yield part
    for one in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        yield from _objects(one)


def test_no_description_is_left_over() -> None:
    """Every parameter is described, and no description is left of one that is gone."""
    document = json.loads(openapi.document())
    parameters = {
        (one["in"], one["name"])
        for methods in document["paths"].values()
        for operation in methods.values()
        for one in operation["parameters"]
    }
    assert {name for place, name in parameters if place == "query"} == {*descriptions.PARAMETERS}
    assert {name for place, name in parameters if place == "path"} == {*descriptions.VARIABLES}
    assert set(descriptions.ENUM_DESCRIPTIONS) == set(descriptions.ENUMS)


@dataclass(frozen=True, kw_only=True)
class Inner:
    """An object with a name."""

    name: str
    size: int | None = None


@dataclass(frozen=True, kw_only=True)
class Outer:
    """An object with names at every depth."""

    items: list[Inner] = field(default_factory=list)
    by_name: dict[str, Inner] = field(default_factory=dict)
    one: Inner | None = None
    tags: dict[str, list[str]] = field(default_factory=dict)
    choice: Inner | Literal["auto"] | None = "auto"


@dataclass(frozen=True, kw_only=True)
class Reserved:
    """An object with a name that Python reserves."""

    from_: str


@dataclass(frozen=True, kw_only=True)
class Named:
    """An object with such names at every depth."""

    class_: dict[str, list[Reserved]]
    if_: Reserved | None = None


def test_members_may_have_names_that_python_reserves() -> None:
    """In JSON they have no `_`, at any depth; with it they are unknown."""
    good = {"class": {"class": [{"from": "b"}]}, "if": {"from": "a"}}
    decoded = body_decode(json.dumps(good).encode(), Named)
    assert decoded == Named(class_={"class": [Reserved(from_="b")]}, if_=Reserved(from_="a"))
    for wrong, word in (
        ({"class_": {}}, "field `class_?`"),
        ({**good, "if_": None}, "field `if_`"),
        ({"class": {"x": [{"from": 1}]}}, "from"),
        ({"class": {"x": [{"from_": "a"}]}}, "from"),
        ({"class": {"x": [5]}}, "object"),
        ({"class": []}, "object"),
        ([], "object"),
    ):
        with pytest.raises(RefusalError, match=word):
            body_decode(json.dumps(wrong).encode(), Named)


GOOD: dict[str, Any] = {
    "items": [{"name": "a"}, {"name": "b", "size": None}],
    "by_name": {"x": {"name": "c", "size": 3}},
    "one": {"name": "d"},
    "tags": {"any": ["name"]},
}


def test_bodies_become_dataclasses() -> None:
    """A valid body is decoded at every depth."""
    decoded = body_decode(json.dumps(GOOD).encode(), Outer)
    assert decoded == Outer(
        items=[Inner(name="a"), Inner(name="b")],
        by_name={"x": Inner(name="c", size=3)},
        one=Inner(name="d"),
        tags={"any": ["name"]},
    )
    assert body_decode(b'{"one": null}', Outer) == Outer()
    assert body_decode(b'{"choice": "auto"}', Outer) == Outer()
    assert body_decode(b'{"choice": {"name": "a"}}', Outer) == Outer(choice=Inner(name="a"))


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"more": 1}, "`more`"),
        ({"items": [{"name": "a", "kind": 1}]}, "`kind`"),
        ({"by_name": {"x": {"name": "a", "size_": 1}}}, "`size_`"),
        ({"one": {"name": "a", "one": {}}}, "`one`"),
        ({"one": {}}, "`name`"),
        ({"items": {}}, "array"),
        ({"tags": {"a": [1]}}, "str"),
        ({"choice": "none"}, "none"),
        ({"choice": {"name": "a", "more": 1}}, "`more`"),
    ],
)
def test_unknown_names_are_refused(change: dict[str, Any], word: str) -> None:
    """Unknown names and wrong types are reported at every depth."""
    with pytest.raises(RefusalError, match=word) as refusal:
        body_decode(json.dumps({**GOOD, **change}).encode(), Outer)
    assert refusal.value.status == 400


def test_optional_bodies() -> None:
    """Only routes whose body has no required member may omit it."""
    optional = {f"{route.method} {route.path}" for route in ROUTES if route.body_optional}
    assert optional == {
        "POST /v1/leases/{id}/renew",
        "POST /v1/leases/{id}/revoke",
        "POST /v1/leases/{id}/move",
        "POST /v1/leases/{id}/keep",
        "POST /v1/pools/{name+}:pause",
        "POST /v1/tokens/{id}/rotate",
        "POST /v1/database/backup",
        "POST /v1/agents/{id}/drain",
        "POST /v1/providers/{id}/drain",
        "POST /v1/providers/{id}/resume",
        "POST /v1/pools/{name+}:slots/{slot}/drain",
        "POST /v1/agents/{id}/resume",
        "POST /v1/agents/{id}/expunge",
        "POST /v1/agents/{id}/decommission",
        "POST /v1/import/rows",
        "POST /v1/reshapes/{id}:undo",
    }


def test_queries_become_dataclasses() -> None:
    """Parameters are converted; unknown, repeated and invalid ones are refused."""
    asked = query_decode([("after", "1.2"), ("wait", "2.5"), ("limit", "7")], ChangesAsked)
    assert asked == ChangesAsked(after="1.2", wait=2.5, limit=7)
    for pairs in ([("until", "1")], [("limit", "1"), ("limit", "1")], [("limit", "x")]):
        with pytest.raises(RefusalError):
            query_decode(pairs, ChangesAsked)


def test_duplicate_routes_are_refused() -> None:
    """A table with two handlers for one method of a path is refused."""
    assert Table(ROUTES).match("/v1/tokens/a") is not None
    assert Table(ROUTES).match("/v1/tokens/a/b") is None
    with pytest.raises(ValueError, match="twice"):
        Table([*ROUTES, ROUTES[0]])


def test_variables_with_slashes() -> None:
    """Such a variable may contain slashes; of two matching paths the first one counts."""
    (token,) = (one for one in ROUTES if one.path == "/v1/tokens/{id}")
    paths = ("/v1/things/{name+}:stop", "/v1/things/{name+}")
    table = Table(
        replace(token, operation=Operation(Access(f"GET {path}", "reader"), Content(), ""))
        for path in paths
    )
    for path, template, name in (
        ("/v1/things/a/b-1", paths[1], "a/b-1"),
        ("/v1/things/a/b:stop", paths[0], "a/b"),
        ("/v1/things/a:go", paths[1], "a:go"),
    ):
        match = table.match(path)
        assert match is not None
        assert [route.path for route in match.by_method.values()] == [template]
        assert match.variables == {"name": name}
    assert table.match("/v1/things/") is None


def test_unexpected_query_parameters_are_refused(native: Native) -> None:
    """No parameter is silently ignored."""
    answer = native.ask("POST", "/v1/database/check?fast=1", {})
    assert (answer.status, answer.body["code"]) == (400, "refused")


def test_wrong_methods(native: Native) -> None:
    """The header of a 405 lists the valid methods."""
    answer = native.ask("PUT", "/v1/tokens")
    assert (answer.status, answer.headers["allow"]) == (405, "POST, GET")


def test_every_code_has_a_status() -> None:
    """The table has every code of the core, with statuses of errors only."""
    assert set(STATUSES) == set(Code)
    assert all(400 <= status < 600 for status in STATUSES.values())


def test_the_description(native: Native) -> None:
    """The document needs no token, contains every route, and its schemas are valid and complete."""
    answer = native.ask("GET", "/v1/openapi.json", token="")
    assert answer.status == 200
    document = answer.body
    assert document["openapi"] == "3.1.0"
    described = {
        (method.upper(), path): operation
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    }
    assert set(described) == {(route.method, template_of(route.path)) for route in ROUTES}
    schemas = document["components"]["schemas"]
    for schema in schemas.values():
        jsonschema.Draft202012Validator.check_schema(schema)
    wanted = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(document)))
    assert wanted <= set(schemas)
    names = [operation["operationId"] for operation in described.values()]
    assert len(set(names)) == len(names)
    for (_, path), operation in described.items():
        in_path = {one["name"] for one in operation["parameters"] if one["in"] == "path"}
        assert in_path == set(re.findall(r"\{(\w+)\}", path))


def test_answers_conform_to_the_description(native: Native) -> None:
    """Responses, also refusals, conform to the OpenAPI document."""
    native.provider("described")
    document = native.ask("GET", "/v1/openapi.json").body
    needs = [{"pool": "described/one"}]
    for method, path, body in (
        ("PUT", "/v1/pools/described/one", {"limit": 1, "hold": 60}),
        ("POST", "/v1/leases", {"needs": needs, "key": "a"}),
        ("POST", "/v1/leases", {"needs": needs, "key": "b"}),
        ("GET", "/v1/pools", None),
        ("GET", "/v1/pools/described/one", None),
        ("GET", "/v1/pools/described/one:report", None),
        ("GET", "/v1/leases", None),
        ("GET", "/v1/leases/verify", None),
        ("GET", "/v1/tokens", None),
        ("GET", "/v1/audit", None),
        ("GET", "/v1/providers", None),
        ("GET", "/v1/watch", None),
        ("GET", "/v1/nothing", None),
    ):
        query = "?after=1.0" if path == "/v1/watch" else ""
        answer = native.ask(method, path + query, body)
        template = path.replace("described/one", "{name}")
        answers = document["paths"].get(template, {}).get(method.lower(), {}).get("responses")
        name = "Problem"
        if answers is not None:
            content = answers[str(answer.status)]["content"]["application/json"]
            name = content["schema"]["$ref"].rpartition("/")[2]
        schema = {"$ref": f"#/components/schemas/{name}", "components": document["components"]}
        jsonschema.Draft202012Validator(schema).validate(answer.body)
