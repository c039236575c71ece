"""Permissions: every route with every kind of caller; a new route needs a row here."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, get_args

import pytest

from moorage.faces.v1 import authorization
from moorage.faces.v1.routes import ROUTES
from moorage.faces.v1.routing import Route
from moorage.faces.web import Caller
from moorage.service.access.roles import FIELDS, Role, Scope, ScopedRole, permits, standing
from moorage.wire import enums
from moorage.wire.enums import LadderRole
from moorage.wire.operations.operation import VARIABLE
from tests.e2e.support.server import serve
from tests.faces.auth.keystone_server import PASSWORD, Keystone, serve_keystone
from tests.faces.v1.native import Native

ALL = {"reader", "bound reader", "user", "service", "operator", "admin"}
UNBOUND = {"reader", "service", "operator", "admin"}
USERS = {"user", "service", "operator", "admin"}
SERVICES = {"service", "operator", "admin"}
OPERATORS = {"operator", "admin"}
ADMINS = {"admin"}
JANITOR = {"janitor"}
GOVERNOR = {"governor"}
AGENT = {"agent"}
REPORTER = {"reporter"}

CELLS: dict[str, set[str]] = {
    "POST /v1/tokens": ADMINS,
    "GET /v1/tokens": ADMINS,
    "POST /v1/tokens/{id}/rotate": ADMINS,
    "DELETE /v1/tokens/{id}": ADMINS,
    "POST /v1/database/backup": ADMINS,
    "POST /v1/database/check": ADMINS,
    "POST /v1/database/epoch": ADMINS,
    "GET /v1/audit": ADMINS,
    "GET /v1/whoami": ALL | {role.value for role in ScopedRole},
    "POST /v1/sign-in-links": ALL,
    "GET /v1/providers": UNBOUND,
    "GET /v1/providers/{id}": UNBOUND,
    "POST /v1/providers/{id}/drain": OPERATORS,
    "POST /v1/providers/{id}/resume": OPERATORS,
    "DELETE /v1/providers/{id}": OPERATORS,
    "GET /v1/consumers": UNBOUND,
    "GET /v1/consumers/{id}": UNBOUND,
    "POST /v1/providers:bulk": SERVICES,
    "GET /v1/usages": ALL,
    "GET /v1/capacity": UNBOUND,
    "GET /v1/find": ALL,
    "POST /v1/claims": USERS,
    "GET /v1/explain": ALL,
    "POST /v1/explain": ALL,
    "GET /v1/pools": ALL | GOVERNOR,
    "POST /v1/pools/{name+}:pause": OPERATORS,
    "POST /v1/pools/{name+}:resume": OPERATORS,
    "GET /v1/pool-templates": ALL,
    "GET /v1/pool-templates/{name+}": ALL,
    "PUT /v1/pool-templates/{name+}": OPERATORS,
    "DELETE /v1/pool-templates/{name+}": OPERATORS,
    "GET /v1/pools/{name+}:slots": ALL | GOVERNOR,
    "POST /v1/pools/{name+}:slots": OPERATORS,
    "POST /v1/pools/{name+}:slots/{slot}/drain": OPERATORS,
    "POST /v1/pools/{name+}:slots/{slot}/resume": OPERATORS,
    "PUT /v1/pools/{name+}:slots/{slot}/labels": OPERATORS,
    "DELETE /v1/pools/{name+}:slots/{slot}": OPERATORS,
    "GET /v1/pools/{name+}:boskos": UNBOUND,
    "PUT /v1/pools/{name+}:boskos": ADMINS,
    "GET /v1/pools/{name+}:contents": ALL | GOVERNOR,
    "GET /v1/pools/{name+}:history": ALL,
    "POST /v1/pools/{name+}:rehearse": ALL,
    "GET /v1/pools/{name+}:report": ALL,
    "GET /v1/pools/{name+}": ALL | GOVERNOR,
    "PUT /v1/pools/{name+}": OPERATORS,
    "DELETE /v1/pools/{name+}": OPERATORS,
    "POST /v1/leases": USERS | GOVERNOR,
    "GET /v1/leases": ALL | JANITOR | GOVERNOR,
    "GET /v1/leases/verify": ALL,
    "GET /v1/leases/{id}": ALL | JANITOR | GOVERNOR,
    "DELETE /v1/leases/{id}": USERS | JANITOR | GOVERNOR,
    "PATCH /v1/leases/{id}": USERS,
    "PUT /v1/leases/{id}/record": USERS | GOVERNOR,
    "POST /v1/leases/{id}/renew": USERS | JANITOR | GOVERNOR,
    "POST /v1/leases/{id}/retry": USERS | GOVERNOR,
    "POST /v1/leases/{id}/outcome": USERS | GOVERNOR,
    "POST /v1/leases/{id}/revoke": OPERATORS | JANITOR,
    "POST /v1/leases/revoke": USERS,
    "POST /v1/leases/{id}/keep": USERS,
    "POST /v1/leases/{id}/offer": USERS,
    "DELETE /v1/leases/{id}/offer": USERS,
    "POST /v1/leases/{id}/accept": USERS,
    "POST /v1/leases/{id}/decline": USERS,
    "POST /v1/leases/{id}/move": OPERATORS,
    "POST /v1/leases/{id}/force": OPERATORS,
    "POST /v1/bookings": USERS,
    "GET /v1/bookings": ALL,
    "GET /v1/bookings/{id}": ALL,
    "PATCH /v1/bookings/{id}": USERS,
    "DELETE /v1/bookings/{id}": USERS,
    "GET /v1/offers": ALL,
    "POST /v1/actions/preview": USERS,
    "POST /v1/actions": USERS,
    "GET /v1/agents": UNBOUND,
    "GET /v1/agents/{id}": UNBOUND | AGENT,
    "PUT /v1/agents/{id}": OPERATORS,
    "PUT /v1/agents/{id}/root": OPERATORS,
    "POST /v1/agents/{id}/desired": OPERATORS,
    "POST /v1/agents/{id}/drain": OPERATORS,
    "POST /v1/agents/{id}/resume": OPERATORS,
    "POST /v1/agents/{id}/expunge": OPERATORS,
    "POST /v1/agents/{id}/decommission": OPERATORS,
    "POST /v1/agents/{id}/enroll": OPERATORS | {"enroller"},
    "POST /v1/agents/{id}/register": OPERATORS | AGENT,
    "PUT /v1/agents/{id}/report": OPERATORS | AGENT,
    "POST /v1/agents/{id}/alive": OPERATORS | AGENT,
    "GET /v1/agents/{id}/starts/{consumer}": UNBOUND | AGENT,
    "POST /v1/groups/{name+}:confirm": OPERATORS,
    "POST /v1/groups/{name+}:wait": OPERATORS,
    "GET /v1/groups": UNBOUND,
    "GET /v1/groups/{name+}": UNBOUND,
    "PUT /v1/groups/{name+}": OPERATORS,
    "DELETE /v1/groups/{name+}": OPERATORS,
    "GET /v1/reporter-groups": UNBOUND,
    "GET /v1/reporter-groups/{name}": UNBOUND | REPORTER,
    "DELETE /v1/reporter-groups/{name}": OPERATORS,
    "PUT /v1/reporter-groups/{name}/members/{member}": SERVICES | REPORTER,
    "DELETE /v1/reporter-groups/{name}/members/{member}": SERVICES | REPORTER,
    "PUT /v1/reporter-groups/{name}/observed": SERVICES | REPORTER,
    "GET /v1/reporter-groups/{name}/pins": UNBOUND | REPORTER,
    "POST /v1/reporter-groups/{name}/pins": OPERATORS,
    "GET /v1/reporter-groups/{name}/nodes": UNBOUND | REPORTER,
    "GET /v1/reporter-groups/{name}/ghosts": UNBOUND | REPORTER,
    "POST /v1/reports": SERVICES | REPORTER,
    "GET /v1/watch": UNBOUND,
    "PUT /v1/import": ADMINS,
    "GET /v1/import": UNBOUND,
    "POST /v1/import/rows": ADMINS,
    "POST /v1/import:finish": ADMINS,
    "DELETE /v1/import": ADMINS,
    "GET /v1/ledger-rows": ADMINS,
    "POST /v1/reshapes:plan": OPERATORS,
    "POST /v1/reshapes": OPERATORS,
    "GET /v1/reshapes": UNBOUND,
    "GET /v1/reshapes/{id}": UNBOUND,
    "POST /v1/reshapes/{id}:undo": OPERATORS,
}
"""Which callers each route permits: repeated here, so that an error in the table is found."""

PLACEMENT: dict[str, set[str]] = {
    "GET /resource_providers": {
        "service",
        "operator",
        "admin",
        *("admin of a customer's project",),
    },
    "GET /usages?project_id=p": SERVICES
    | {"bound reader", "user", "admin of a customer's project"},
}
"""The same for the Placement API, where a role counts in any project, as in OpenStack Placement."""

DEFAULT = {"id": "default", "name": "Default"}
KEYSTONE: dict[str, tuple[str, tuple[str, ...], dict[str, Any]]] = {
    "admin of the administrators' project": (
        "admin",
        ("admin", "member", "reader"),
        {"project": {"id": "a", "name": "admin", "domain": DEFAULT}},
    ),
    "admin of a customer's project": (
        "user",
        ("admin", "member", "reader"),
        {"project": {"id": "p", "name": "shop", "domain": {"id": "c", "name": "customer"}}},
    ),
    "service": (
        "service",
        ("service",),
        {"project": {"id": "s", "name": "service", "domain": DEFAULT}},
    ),
    "service of a customer's project": (
        "user",
        ("service", "member"),
        {"project": {"id": "p", "name": "shop", "domain": {"id": "c", "name": "customer"}}},
    ),
    "reader of a project": (
        "bound reader",
        ("reader",),
        {"project": {"id": "p", "name": "shop", "domain": DEFAULT}},
    ),
    "admin of the system": ("admin", ("admin", "member", "reader"), {"system": {"all": True}}),
    "reader of the system": ("reader", ("reader",), {"system": {"all": True}}),
    "admin of a domain": ("", ("admin", "service", "member", "reader"), {"domain": DEFAULT}),
    "reader of a domain": ("", ("reader",), {"domain": DEFAULT}),
    "unscoped": ("", ("admin", "service", "member", "reader"), {}),
    "of no role that is known": (
        "",
        ("heat_stack_owner",),
        {"project": {"id": "a", "name": "admin", "domain": DEFAULT}},
    ),
}
"""Callers of Keystone: the equivalent in `CELLS` ("": none), their roles and scope."""


@dataclass(frozen=True)
class RoleServer:
    """A server with a token of every kind of caller; `counts_as` is its equivalent in `CELLS`."""

    native: Native
    tokens: dict[str, str]
    counts_as: dict[str, str]

    def permitted(self, method: str, path: str, **headers: str) -> set[str]:
        """Return the callers that are not refused; the request is too invalid to have an effect."""
        found = set()
        for name, token in self.tokens.items():
            answer = self.native.ask(method, path, b"{", token=token, **headers)
            assert answer.status != 401, (name, answer)
            if answer.status != 403:
                assert answer.status < 500, (name, answer)
                found.add(name)
        return found


@pytest.fixture(scope="module")
def role_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RoleServer]:
    """Yield a server that accepts its own tokens and Keystone's."""
    database = tmp_path_factory.mktemp("gate") / "moorage.sqlite"
    with serve_keystone() as keystone:
        variables = {"MOORAGE_KEYSTONE_PASSWORD": PASSWORD}
        options = ["--auth", "keystone", "--keystone-url", keystone.url, "--no-access-log"]
        with serve(database, *options, **variables) as server:
            native = Native(server.url, database)
            yield _role_server(native, keystone)


def _role_server(native: Native, keystone: Keystone) -> RoleServer:
    own = {role.value: native.token(role, "p" if role is Role.USER else None) for role in Role}
    own["bound reader"] = native.token("reader", "p", name="bound")
    for role, field in FIELDS.items():
        wanted = {"name": role, "role": role, "scope": {field: ["nothing"]}}
        own[role] = native.ask("POST", "/v1/tokens", wanted).body["token"]
    counts_as = {name: name for name in own}
    for number, (name, (like, given, scope)) in enumerate(KEYSTONE.items()):
        token = f"keystone-{number}"
        keystone.admit(token, *given, **scope)
        own[name] = token
        counts_as[name] = like
    return RoleServer(native, own, counts_as)


def name_of(route: Route) -> str:
    """Return the key of a route in `CELLS`."""
    return f"{route.method} {route.path}"


GUARDED = [route for route in ROUTES if route.role is not None]


def test_every_route_has_a_row() -> None:
    """A new route needs a row here; only the API description is open to anyone."""
    assert {name_of(route) for route in GUARDED} == set(CELLS)
    assert [route.path for route in ROUTES if route.role is None] == ["/v1/openapi.json"]
    kinds = {role.value for role in (*Role, *ScopedRole)} | {"bound reader"}
    assert set().union(*CELLS.values()) == kinds


@pytest.mark.parametrize("route", GUARDED, ids=name_of)
def test_permissions_of_the_native_api(role_server: RoleServer, route: Route) -> None:
    """Each kind of caller is accepted or refused as its row demands; unknown tokens get a 401."""
    path = VARIABLE.sub("nothing", route.path)
    expected = {
        name for name, like in role_server.counts_as.items() if like in CELLS[name_of(route)]
    }
    assert role_server.permitted(route.method, f"{path}?cursor=x&cursor=y") == expected
    for stranger in ("moorage_no", "keystone-no", ""):
        answer = role_server.native.ask(route.method, path, b"{", token=stranger)
        assert (answer.status, answer.body["code"]) == (401, "unauthenticated")


@pytest.mark.parametrize("address", PLACEMENT)
def test_permissions_of_the_placement_api(role_server: RoleServer, address: str) -> None:
    """Scoped roles, domains and the system have no access; admins of any project have."""
    method, path = address.split(" ")
    found = role_server.permitted(method, path, OpenStack_API_Version="placement latest")
    allowed = {
        name
        for name, like in role_server.counts_as.items()
        if (like in PLACEMENT[address] and "system" not in name) or name in PLACEMENT[address]
    }
    # As in OpenStack Placement, `service` counts in every project.
    assert found == allowed | {"service of a customer's project"}


@pytest.mark.parametrize(
    ("seen", "project", "role", "bound"),
    [
        ({"admin"}, "p", Role.ADMIN, None),
        ({"admin", "member", "reader"}, "p", Role.ADMIN, None),
        ({"service", "member", "reader"}, "p", Role.OPERATOR, None),
        ({"service"}, "p", Role.SERVICE, None),
        ({"member", "reader"}, "p", Role.USER, "p"),
        ({"member", "reader"}, None, Role.READER, None),
        ({"reader"}, "p", Role.READER, "p"),
        ({"reader"}, None, Role.READER, None),
    ],
)
def test_native_roles_of_policy_roles(
    seen: set[str], project: str | None, role: Role, bound: str | None
) -> None:
    """A caller's roles have the same meaning for all kinds of authentication."""
    caller = Caller("someone", project, frozenset(seen))
    assert authorization.role_of(caller) is role
    assert authorization.project_of(caller, role) == bound


def test_unknown_roles_have_no_rights() -> None:
    """A caller without a known role has no rights."""
    assert authorization.role_of(Caller("someone", "p", frozenset({"heat_stack_owner"}))) is None
    foreign = frozenset({"admin"})
    assert authorization.role_of(Caller("someone", "p", foreign, foreign=foreign)) is None
    scope = Scope(ScopedRole.JANITOR, ("a",))
    assert authorization.role_of(Caller("someone", None, frozenset({"admin"}), scope=scope)) is None


def test_the_ladder() -> None:
    """A role includes the rights of lower ones; roles outside the ladder include none."""
    ladder = list(Role)
    assert [role.value for role in ladder] == list(get_args(LadderRole))
    assert [role.value for role in ScopedRole] == list(get_args(enums.ScopedRole))
    for n, role in enumerate(ladder):
        assert standing(role) == {one.value for one in ladder[: n + 1]}
        assert [permits(least, role) for least in ladder] == [m <= n for m in range(len(ladder))]
    for outside in (*ScopedRole, "server", ""):
        assert standing(outside) == frozenset()
    assert not any(permits(least, None) for least in ladder)
    assert set(FIELDS) == set(ScopedRole)


def test_the_description_names_scoped_roles(role_server: RoleServer) -> None:
    """Programs can read in the description who may call a route."""
    document = role_server.native.ask("GET", "/v1/openapi.json", token="").body
    answer = {
        (method.upper(), path): operation["x-scoped-roles"]
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    }
    assert answer["DELETE", "/v1/leases/{id}"] == ["janitor", "governor"]
    assert answer["PUT", "/v1/pools/{name}"] == []
    assert json.dumps(document).count('"janitor"') == sum(
        "janitor" in row for row in CELLS.values()
    )
