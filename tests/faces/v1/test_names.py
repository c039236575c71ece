"""Who may take a name that others can then no longer have; a new route needs a row here.

Each caller tries each name on each route, with the widest scope that an operator would give it.
What counts is whether the name exists afterwards, not the status.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4, uuid5

import pytest

from moorage.service.access.roles import FIELDS, Role, ScopedRole
from moorage.wire.operations import operations_by_id
from tests.faces.v1.leasing import make_pool
from tests.faces.v1.native import Native, Response

MINE = "mine"
"""What the scopes of all callers name; agents have one agent each."""

OPERATORS = {"operator", "admin"}
SERVICES = {"service", *OPERATORS}

NOTHING: dict[str, set[str]] = {}
NAMES: dict[str, dict[str, set[str]]] = {
    "POST /v1/tokens": {"owner": {"admin"}},
    "POST /v1/tokens/{id}/rotate": NOTHING,
    "DELETE /v1/tokens/{id}": NOTHING,
    "POST /v1/sign-in-links": NOTHING,
    "POST /v1/database/backup": NOTHING,
    "POST /v1/database/check": NOTHING,
    "POST /v1/database/epoch": NOTHING,
    "POST /v1/providers/{id}/drain": NOTHING,
    "POST /v1/providers/{id}/resume": NOTHING,
    "DELETE /v1/providers/{id}": NOTHING,
    "POST /v1/providers:bulk": {"provider": SERVICES, "class": SERVICES, "trait": SERVICES},
    "PUT /v1/import": NOTHING,
    "POST /v1/import/rows": {"provider": set(), "class": set(), "trait": set()},
    "POST /v1/import:finish": NOTHING,
    "DELETE /v1/import": NOTHING,
    "POST /v1/reshapes:plan": {"provider": set(), "class": set(), "trait": set()},
    "POST /v1/reshapes": {"provider": OPERATORS, "class": set(), "trait": set()},
    "POST /v1/reshapes/{id}:undo": NOTHING,
    "POST /v1/claims": {"consumer": {"user", *SERVICES}},
    "POST /v1/explain": {"class": set(), "trait": set()},
    "PUT /v1/pools/{name+}": {"pool": OPERATORS, "agent group": set(), "reporter group": set()},
    "DELETE /v1/pools/{name+}": NOTHING,
    "PUT /v1/pool-templates/{name+}": {"template": OPERATORS, "pool": set()},
    "DELETE /v1/pool-templates/{name+}": NOTHING,
    "POST /v1/pools/{name+}:pause": NOTHING,
    "POST /v1/pools/{name+}:resume": NOTHING,
    "POST /v1/pools/{name+}:rehearse": NOTHING,
    "POST /v1/pools/{name+}:slots": {"slot": OPERATORS},
    "POST /v1/pools/{name+}:slots/{slot}/drain": NOTHING,
    "POST /v1/pools/{name+}:slots/{slot}/resume": NOTHING,
    "PUT /v1/pools/{name+}:slots/{slot}/labels": NOTHING,
    "DELETE /v1/pools/{name+}:slots/{slot}": NOTHING,
    "PUT /v1/pools/{name+}:boskos": NOTHING,
    "POST /v1/leases": {"pool": set(), "slot": set(), "key of others": set()},
    "DELETE /v1/leases/{id}": NOTHING,
    "PATCH /v1/leases/{id}": NOTHING,
    "PUT /v1/leases/{id}/record": NOTHING,
    "POST /v1/leases/{id}/renew": NOTHING,
    "POST /v1/leases/{id}/retry": NOTHING,
    "POST /v1/leases/{id}/outcome": NOTHING,
    "POST /v1/leases/{id}/revoke": NOTHING,
    "POST /v1/leases/revoke": NOTHING,
    "POST /v1/leases/{id}/keep": NOTHING,
    "POST /v1/leases/{id}/offer": NOTHING,
    "DELETE /v1/leases/{id}/offer": NOTHING,
    "POST /v1/leases/{id}/accept": NOTHING,
    "POST /v1/leases/{id}/decline": NOTHING,
    "POST /v1/leases/{id}/move": NOTHING,
    "POST /v1/leases/{id}/force": NOTHING,
    "POST /v1/bookings": {"pool": set()},
    "PATCH /v1/bookings/{id}": {"pool": set()},
    "DELETE /v1/bookings/{id}": NOTHING,
    "POST /v1/actions/preview": NOTHING,
    "POST /v1/actions": NOTHING,
    "PUT /v1/agents/{id}": {"agent": OPERATORS, "agent group": OPERATORS},
    "PUT /v1/agents/{id}/root": {"provider": set()},
    "POST /v1/agents/{id}/desired": {"class": set()},
    "POST /v1/agents/{id}/drain": NOTHING,
    "POST /v1/agents/{id}/resume": NOTHING,
    "POST /v1/agents/{id}/expunge": NOTHING,
    "POST /v1/agents/{id}/decommission": NOTHING,
    "POST /v1/agents/{id}/enroll": {
        "agent": {"enroller", *OPERATORS},
        "agent group": {"enroller", *OPERATORS},
    },
    "POST /v1/agents/{id}/register": {"agent": set(), "provider": set(), "class": set()},
    "PUT /v1/agents/{id}/report": {"agent": set(), "class": set()},
    "POST /v1/agents/{id}/alive": {"agent": set()},
    "POST /v1/groups/{name+}:confirm": {"agent group": set()},
    "POST /v1/groups/{name+}:wait": {"agent group": set()},
    "PUT /v1/groups/{name+}": {"agent group": OPERATORS, "class": set()},
    "DELETE /v1/groups/{name+}": NOTHING,
    "DELETE /v1/reporter-groups/{name}": NOTHING,
    "PUT /v1/reporter-groups/{name}/members/{member}": {"reporter group": {"reporter", *SERVICES}},
    "DELETE /v1/reporter-groups/{name}/members/{member}": {"reporter group": set()},
    "PUT /v1/reporter-groups/{name}/observed": {"reporter group": {"reporter", *SERVICES}},
    "POST /v1/reporter-groups/{name}/pins": {"reporter group": set()},
    "POST /v1/reports": {
        "provider": {"reporter", *SERVICES},
        "class": {"reporter", *SERVICES},
        "trait": {"reporter", *SERVICES},
    },
}
"""By route the names that a request to it could take, and who may take them that way."""

PLACEMENT = {"OpenStack_API_Version": "placement 1.39"}
CALLERS = (*(role.value for role in Role), *(role.value for role in ScopedRole))


@dataclass
class Attempt:
    """One caller's attempt: everything that it names is new."""

    native: Native
    role: str
    word: str = field(default_factory=lambda: f"n{uuid4().hex[:12]}")
    uuid: str = field(default_factory=lambda: str(uuid4()))

    def __post_init__(self) -> None:
        wanted: dict[str, Any] = {"name": self.word, "role": self.role}
        if self.role in FIELDS:
            scoped = self.uuid if self.role == "agent" else f"{MINE}/*"
            names = [scoped, f"{MINE}-{self.word}"] if self.role == "reporter" else [scoped]
            wanted["scope"] = {FIELDS[ScopedRole(self.role)]: names}
        elif self.role == "user":
            wanted["project_id"] = "p"
        self.token = self.native.ask("POST", "/v1/tokens", wanted).body["token"]
        self.custom = f"CUSTOM_{self.word.upper()}"
        self.below = f"{MINE}/{self.word}"
        self.reporters = f"{MINE}-{self.word}"

    def send(self, method: str, path: str, body: Any = None) -> Response:
        """Send a request as this caller."""
        return self.native.ask(method, path, body, token=self.token)

    def exists(self, kind: str) -> bool:
        """Return whether the name of this kind exists now."""
        paths = {
            "pool": f"/v1/pools/{self.below}",
            "template": f"/v1/pool-templates/{self.below}/*",
            "agent": f"/v1/agents/{self.uuid}",
            "agent group": f"/v1/groups/{self.below}",
            "reporter group": f"/v1/reporter-groups/{self.reporters}",
            "consumer": f"/v1/consumers/{self.uuid}",
            "class": f"/resource_classes/{self.custom}",
            "trait": f"/traits/{self.custom}",
        }
        if kind in paths:
            return self.native.ask("GET", paths[kind], **PLACEMENT).status in (200, 204)
        if kind == "provider":
            path = f"/resource_providers?name={self.word}"
            return bool(self.native.ask("GET", path, **PLACEMENT).body["resource_providers"])
        if kind == "slot":
            slots = self.native.ask("GET", f"/v1/pools/{MINE}/s{self.word}:slots").body["slots"]
            return any(one["name"] == self.word for one in slots)
        if kind == "owner":
            tokens = self.native.ask("GET", "/v1/tokens?limit=1000").body["tokens"]
            return any(one["name"] == f"{self.word}-owner" for one in tokens)
        assert kind == "key of others"
        other = {"name": "other", "role": "user", "project_id": "q"}
        token = self.native.ask("POST", "/v1/tokens", other).body["token"]
        pool = make_pool(self.native, limit=9)
        body = {"needs": [{"pool": pool}], "key": self.word}
        answer = self.native.ask("POST", "/v1/leases", body, token=token)
        return answer.status != 201 or answer.body["owner"] != "q/other"


def slots_of(one: Attempt) -> str:
    """Return a pool whose slots have names."""
    name = f"{MINE}/s{one.word}"
    answer = one.native.ask("PUT", f"/v1/pools/{name}", {"native_slots": True})
    assert answer.status == 200, answer
    return name


def host_of(one: Attempt) -> str:
    """Return a provider that has a processor."""
    uuid = one.native.provider(f"host-{one.word}")
    stock = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 8}}}
    path = f"/resource_providers/{uuid}/inventories"
    assert one.native.ask("PUT", path, stock, **PLACEMENT).status == 200
    return uuid


def enroll(one: Attempt, *, accepted: bool = False) -> None:
    """Let the machine of the attempt enroll, so that no operator has accepted it."""
    path = f"/v1/agents/{one.uuid}/enroll"
    assert one.native.ask("POST", path, {"group": "enrolled"}).status == 201
    if accepted:
        assert one.native.ask("POST", f"/v1/agents/{one.uuid}/resume", {}).status == 200


def register(one: Attempt) -> None:
    """Register with the name as the host's, and with a part that has the class."""
    part = str(uuid5(UUID(one.uuid), "numa0"))
    classes = {one.custom: {"eligible": 10}}
    body = {
        "boot_id": "b",
        "facts": {"hostname": one.word},
        "parts": [{"provider": part, "name": "numa0", "classes": classes}],
    }
    one.send("POST", f"/v1/agents/{one.uuid}/register", body)


def nodes(one: Attempt) -> list[dict[str, Any]]:
    """Return a provider with the name, the class and the trait."""
    inventories = {one.custom: {"total": 1}}
    return [
        {"uuid": one.uuid, "name": one.word, "inventories": inventories, "traits": [one.custom]}
    ]


def join(one: Attempt) -> Response:
    """Join the group as a member."""
    path = f"/v1/reporter-groups/{one.reporters}/members/m"
    return one.send("PUT", path, {"instance": str(uuid4())})


def report_nodes(one: Attempt) -> None:
    """Report nodes as the only member."""
    joined = join(one)
    token = joined.body["token"] if joined.status == 200 else "none"
    body = {"group": one.reporters, "member": "m", "token": token, "nodes": nodes(one)}
    one.send("POST", "/v1/reports", body)


def claim(one: Attempt) -> None:
    """Claim for a consumer that does not exist."""
    host_of(one)
    body = {
        "groups": [{"resources": {"VCPU": 1}}],
        "consumer": one.uuid,
        "project_id": "p",
        "user_id": one.word,
        "consumer_type": "INSTANCE",
    }
    one.send("POST", "/v1/claims", body)


def lease(one: Attempt) -> None:
    """Ask for a unit of a pool, and for one of a pool that there is not."""
    one.send("POST", "/v1/leases", {"needs": [{"pool": one.below}], "key": f"{one.word}-none"})
    needs = [{"pool": slots_of(one), "labels": {"name": one.word}}]
    one.send("POST", "/v1/leases", {"needs": needs, "key": one.word})


def explain(one: Attempt) -> None:
    """Ask about a class and a trait that there are not."""
    group = {"resources": {one.custom: 1}, "required": [one.custom]}
    one.send("POST", "/v1/explain", {"groups": [group]})


def wish(one: Attempt) -> None:
    """Wish for a class that the machine does not have."""
    enroll(one)
    body = {"resource_class": one.custom, "amount": 1}
    one.send("POST", f"/v1/agents/{one.uuid}/desired", body)


def booked(one: Attempt, pool: str) -> dict[str, Any]:
    """Return the body of a booking of a pool."""
    start = datetime.now(UTC) + timedelta(days=1)  # noqa: TID251  # by the clock of the real server
    times = {"start": start.isoformat(), "end": (start + timedelta(hours=1)).isoformat()}
    return {"needs": [{"pool": pool, "units": 1}], "key": f"{one.word}-{pool}", **times}


def rebook(one: Attempt) -> None:
    """Change a booking so that it needs a pool that there is not."""
    other = make_pool(one.native)
    made = one.native.ask("POST", "/v1/bookings", booked(one, other))
    assert made.status == 201, made
    needs = booked(one, one.below)["needs"]
    one.send("PATCH", f"/v1/bookings/{made.body['id']}", {"needs": needs})


SEEN_AT = "2026-01-01T00:00:00Z"


def rows(one: Attempt) -> None:
    """Write rows although nothing is imported."""
    times = {"created_at": SEEN_AT, "updated_at": SEEN_AT}
    provider = {"uuid": one.uuid, "name": one.word, "generation": 1, "parent": None, **times}
    name = {"name": one.custom, **times}
    body = {"classes": [name], "traits": [name], "providers": [provider]}
    one.send("POST", "/v1/import/rows", body)


def reshape(path: str) -> Callable[[Attempt], None]:
    """Return what creates a provider by a plan, and then gives it the class and the trait."""

    def sent(one: Attempt) -> None:
        plan = {"create": [{"uuid": one.uuid, "name": one.word}]}
        one.send("POST", path, {"plan": plan})
        one.send("POST", path, {"plan": {"traits": {one.uuid: [one.custom]}}})
        one.send("POST", path, {"plan": {"inventories": {one.uuid: {one.custom: {"total": 1}}}}})

    return sent


TRIES: dict[str, Callable[[Attempt], object]] = {
    "POST /v1/tokens": lambda one: one.send(
        "POST", "/v1/tokens", {"name": f"{one.word}-owner", "role": "reader"}
    ),
    "POST /v1/providers:bulk": lambda one: one.send(
        "POST", "/v1/providers:bulk", {"providers": nodes(one), "create_vocabulary": True}
    ),
    "POST /v1/import/rows": rows,
    "POST /v1/reshapes:plan": reshape("/v1/reshapes:plan"),
    "POST /v1/reshapes": reshape("/v1/reshapes"),
    "POST /v1/claims": claim,
    "POST /v1/explain": explain,
    "PUT /v1/pools/{name+}": lambda one: one.send("PUT", f"/v1/pools/{one.below}", {"limit": 1}),
    "PUT /v1/pool-templates/{name+}": lambda one: one.send(
        "PUT", f"/v1/pool-templates/{one.below}/*", {"pool": {"limit": 1}}
    ),
    "POST /v1/pools/{name+}:slots": lambda one: one.send(
        "POST", f"/v1/pools/{slots_of(one)}:slots", {"names": [one.word]}
    ),
    "POST /v1/leases": lease,
    "POST /v1/bookings": lambda one: one.send("POST", "/v1/bookings", booked(one, one.below)),
    "PATCH /v1/bookings/{id}": rebook,
    "PUT /v1/agents/{id}": lambda one: one.send(
        "PUT", f"/v1/agents/{one.uuid}", {"group": one.below}
    ),
    "PUT /v1/agents/{id}/root": lambda one: one.send(
        "PUT", f"/v1/agents/{one.uuid}/root", {"root": str(uuid4())}
    ),
    "POST /v1/agents/{id}/desired": wish,
    "POST /v1/agents/{id}/enroll": lambda one: one.send(
        "POST", f"/v1/agents/{one.uuid}/enroll", {"group": one.below}
    ),
    "POST /v1/agents/{id}/register": register,
    "PUT /v1/agents/{id}/report": lambda one: one.send(
        "PUT",
        f"/v1/agents/{one.uuid}/report",
        {
            "boot_id": "b",
            "report_generation": 1,
            "desired_generation_seen": 1,
            "phase": "done",
            "actual": {one.uuid: {one.custom: 5}},
        },
    ),
    "POST /v1/agents/{id}/alive": lambda one: one.send(
        "POST", f"/v1/agents/{one.uuid}/alive", {"boot_id": "b"}
    ),
    "POST /v1/groups/{name+}:confirm": lambda one: one.send(
        "POST", f"/v1/groups/{one.below}:confirm"
    ),
    "POST /v1/groups/{name+}:wait": lambda one: one.send(
        "POST", f"/v1/groups/{one.below}:wait", {"seconds": 60}
    ),
    "PUT /v1/groups/{name+}": lambda one: one.send(
        "PUT", f"/v1/groups/{one.below}", {"desired": {one.custom: {"amount": 1}}}
    ),
    "PUT /v1/reporter-groups/{name}/members/{member}": join,
    "DELETE /v1/reporter-groups/{name}/members/{member}": lambda one: one.send(
        "DELETE", f"/v1/reporter-groups/{one.reporters}/members/m"
    ),
    "PUT /v1/reporter-groups/{name}/observed": lambda one: one.send(
        "PUT",
        f"/v1/reporter-groups/{one.reporters}/observed",
        {"members": ["m"], "seen_at": SEEN_AT},
    ),
    "POST /v1/reporter-groups/{name}/pins": lambda one: one.send(
        "POST",
        f"/v1/reporter-groups/{one.reporters}/pins",
        {"nodes": [one.uuid], "member": "m"},
    ),
    "POST /v1/reports": report_nodes,
}
"""How each name is tried, by route."""


def test_every_route_that_writes_has_a_row() -> None:
    """So a new one cannot take a name that nobody has thought of."""
    writing = {
        f"{one.method} {one.path}" for one in operations_by_id().values() if one.method != "GET"
    }
    assert writing == set(NAMES)
    assert set(TRIES) == {route for route, kinds in NAMES.items() if kinds}
    assert set().union(*(who for kinds in NAMES.values() for who in kinds.values())) < {*CALLERS}


@pytest.mark.parametrize("route", TRIES)
def test_who_may_take_which_name(native: Native, route: str) -> None:
    """Those who may, can; for all others the name does not exist afterwards."""
    took: dict[str, set[str]] = {kind: set() for kind in NAMES[route]}
    for role in CALLERS:
        one = Attempt(native, role)
        TRIES[route](one)
        for kind in took:
            if one.exists(kind):
                took[kind].add(role)
    assert took == NAMES[route]


@pytest.mark.parametrize("accepted", [False, True])
def test_a_machine_names_its_provider_once_it_is_accepted(native: Native, accepted: bool) -> None:
    """With the token that it got when it enrolled, and not before an operator has agreed."""
    one = Attempt(native, "agent")
    enroll(one, accepted=accepted)
    register(one)
    assert one.exists("agent")
    assert one.exists("provider") is accepted
    assert one.exists("class") is accepted
