"""Every route of the table: what input it takes, how it is described. Who may: `test_roles`."""

import json
import re
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import jsonschema
import pytest

from moorage.core.errors import Code
from moorage.faces.v1.decoding import body_decode, query_decode
from moorage.faces.v1.openapi import encoded, template_of
from moorage.faces.v1.problems import STATUSES
from moorage.faces.v1.routes import ROUTES
from moorage.faces.v1.routing import Table
from moorage.faces.web import RefusalError
from moorage.wire.changes import ChangesAsked
from tests.faces.v1.native import Native


def test_generators_of_clients_can_read_the_description() -> None:
    """What some of them stumble on is not in it; names of operations are for people, and unique.

    `make generators` runs two of them.
    """
    document = json.loads(encoded(ROUTES))
    assert not any(word in json.dumps(document) for word in ('"prefixItems"', '"items": false'))
    waiting = document["components"]["schemas"]["Waiting"]
    assert waiting["properties"]["eta_seconds"]["anyOf"][0] == {
        "type": "array",
        "minItems": 2,
        "maxItems": 2,
        "items": {"type": "number"},
    }
    lease = document["components"]["schemas"]["Lease"]["properties"]
    assert lease["state"]["enum"] == ["ended", "granted", "waiting"]
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


@dataclass(frozen=True, kw_only=True)
class Inner:
    """Something with a name."""

    name: str
    size: int | None = None


@dataclass(frozen=True, kw_only=True)
class Outer:
    """Something with names at every depth."""

    items: list[Inner] = field(default_factory=list)
    by_name: dict[str, Inner] = field(default_factory=dict)
    one: Inner | None = None
    tags: dict[str, list[str]] = field(default_factory=dict)
    choice: Inner | Literal["auto"] | None = "auto"


GOOD: dict[str, Any] = {
    "items": [{"name": "a"}, {"name": "b", "size": None}],
    "by_name": {"x": {"name": "c", "size": 3}},
    "one": {"name": "d"},
    "tags": {"any": ["name"]},
}


def test_bodies_become_dataclasses() -> None:
    """What fits is decoded, at every depth."""
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
def test_names_that_nobody_knows_are_refused(change: dict[str, Any], word: str) -> None:
    """A misspelled name is told, wherever it stands, as is a wrong type."""
    with pytest.raises(RefusalError, match=word) as refusal:
        body_decode(json.dumps({**GOOD, **change}).encode(), Outer)
    assert refusal.value.status == 400


def test_bodies_that_may_be_left_out() -> None:
    """Those of acts of which nothing must be said; not those that say what a thing shall be."""
    optional = {f"{route.method} {route.path}" for route in ROUTES if route.body_optional}
    assert optional == {
        "POST /v1/leases/{id}/renew",
        "POST /v1/leases/{id}/revoke",
        "POST /v1/tokens/{id}/rotate",
        "POST /v1/database/backup",
    }


def test_queries_become_dataclasses() -> None:
    """Parameters are converted; unknown, repeated and unfit ones are refused."""
    asked = query_decode([("after", "1.2"), ("wait", "2.5"), ("limit", "7")], ChangesAsked)
    assert asked == ChangesAsked(after="1.2", wait=2.5, limit=7)
    for pairs in ([("until", "1")], [("limit", "1"), ("limit", "1")], [("limit", "x")]):
        with pytest.raises(RefusalError):
            query_decode(pairs, ChangesAsked)


def test_no_route_stands_twice() -> None:
    """A table with two handlers for one method of one address is refused."""
    assert Table(ROUTES).match("/v1/tokens/a") is not None
    assert Table(ROUTES).match("/v1/tokens/a/b") is None
    with pytest.raises(ValueError, match="twice"):
        Table([*ROUTES, ROUTES[0]])


def test_variables_of_several_segments() -> None:
    """They take slashes; of two paths that fit, the one that stands first is meant."""
    (token,) = (one for one in ROUTES if one.path == "/v1/tokens/{id}")
    paths = ("/v1/things/{name+}:stop", "/v1/things/{name+}")
    table = Table(replace(token, path=path) for path in paths)
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


def test_query_parameters_are_refused_where_there_are_none(native: Native) -> None:
    """Nothing that a caller says is silently left out."""
    told = native.ask("POST", "/v1/database/check?fast=1", {})
    assert (told.status, told.body["code"]) == (400, "refused")


def test_methods_that_are_not_there(native: Native) -> None:
    """405 says which are."""
    told = native.ask("PUT", "/v1/tokens")
    assert (told.status, told.headers["allow"]) == (405, "POST, GET")


def test_every_code_has_a_status() -> None:
    """The table names every code of the core, and no status that is no refusal."""
    assert set(STATUSES) == set(Code)
    assert all(400 <= status < 600 for status in STATUSES.values())


def test_the_description(native: Native) -> None:
    """It is told without a token, names every route, and its schemas are sound and complete."""
    told = native.ask("GET", "/v1/openapi.json", token="")
    assert told.status == 200
    document = told.body
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


def test_answers_fit_their_description(native: Native) -> None:
    """What is answered is what the document says, refusals included."""
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
        told = native.ask(method, path + query, body)
        template = path.replace("described/one", "{name}")
        answers = document["paths"].get(template, {}).get(method.lower(), {}).get("responses")
        name = "Problem"
        if answers is not None:
            content = answers[str(told.status)]["content"]["application/json"]
            name = content["schema"]["$ref"].rpartition("/")[2]
        schema = {"$ref": f"#/components/schemas/{name}", "components": document["components"]}
        jsonschema.Draft202012Validator(schema).validate(told.body)
