"""Requests to every route with large objects, to measure how long each blocks the event loop.

`missing` lists the routes that have no request here.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import quote

from bench import native
from bench.fleet import FLAT, FLAT_HOST, Fleet, identifier
from bench.loop.booking_probes import bookings
from bench.loop.fleet_probes import fleet, reporters
from bench.loop.import_probes import imports
from bench.loop.page_probes import pages, paths
from bench.loop.reshape_probes import machine_plans, reshapes
from bench.loop.slot_probes import slots
from bench.wire import NOBODY, Session, request
from moorage.faces.placement.routes import routes
from moorage.wire.operations import operations_by_id

BULK_HOSTS = 5_000
LARGE = 100_000
"""The number of hosts for which the sizes are meant; they shrink with smaller fleets."""


@dataclass(frozen=True)
class Sizes:
    """The sizes of objects that have no upper bound."""

    custom_traits: int = 10_000
    """Custom traits."""
    consumers_of_one: int = 20_000
    """Consumers of one provider."""
    providers_of_one: int = 5_000
    """Providers of which one consumer has allocations."""
    consumers: int = 2_500
    """Consumers in one request, which may have about one MiB."""
    reshaped: int = 60_000
    """Consumers in the largest reshape."""
    planned: int = 9_900
    """Consumers in the largest reshape plan."""
    tickets: int = 10_000
    """Tickets in one waiting line."""
    unchanged: int = 4_990
    """Hosts of a bulk report that changes nothing."""

    @classmethod
    def of(cls, hosts: int) -> "Sizes":
        """Return the sizes for a fleet of `hosts` flat hosts."""
        whole = asdict(cls())
        return cls(**{name: max(4, n * min(hosts, LARGE) // LARGE) for name, n in whole.items()})


KEPT_HOST = identifier(9, 1)
TRAITS_HOST = identifier(9, 2)
CHURNED = identifier(9, 3)
CROWDED = identifier(9, 4)
PLANNED = identifier(9, 5)
PROJECT, USER = "bench", "bench"
POOL = "bench/held"

CONSUMER = "{:08x}-0000-4000-a000-{:012x}"


@dataclass(frozen=True)
class Probe:
    """One request, with a name and its route."""

    what: str
    method: str
    route: str
    raw: bytes


def _json(method: str, path: str, body: Any = None) -> bytes:
    return request(method, path, b"" if body is None else json.dumps(body).encode())


def bulk(items: list[dict[str, Any]]) -> bytes:
    """Return a bulk report of providers."""
    return _json("POST", native.BULK, {"providers": items, "create_vocabulary": True})


def reports(fleet: Fleet) -> Iterator[bytes]:
    """Return requests that create a fleet."""
    items: list[dict[str, Any]] = []
    for host in fleet.hosts():
        items += [
            {
                "uuid": one.uuid,
                "name": one.name,
                "parent": one.parent,
                "inventories": one.inventories,
                "traits": one.traits,
                "aggregates": one.aggregates,
            }
            for one in host
        ]
        if len(items) + 10 > BULK_HOSTS:
            yield bulk(items)
            items = []
    if items:
        yield bulk(items)


def large_objects(sizes: Sizes) -> Iterator[bytes]:
    """Return requests that create the large objects: traits, consumers, allocations."""
    traits = [f"CUSTOM_WORD_{n:06d}" for n in range(sizes.custom_traits)]
    big = {"total": 2_000_000_000}
    yield bulk(
        [
            {"uuid": KEPT_HOST, "name": "kept", "inventories": {"SRIOV_NET_VF": big}},
            {"uuid": CROWDED, "name": "crowded", "inventories": {"SRIOV_NET_VF": big}},
            {"uuid": CHURNED, "name": "churned", "inventories": {"SRIOV_NET_VF": big}},
            {"uuid": PLANNED, "name": "planned", "inventories": {"SRIOV_NET_VF": big}},
        ]
    )
    yield bulk([{"uuid": TRAITS_HOST, "name": "wordy", "traits": traits}])
    for first in range(0, sizes.consumers_of_one, sizes.consumers):
        yield _json(
            "POST",
            "/allocations",
            consumers_on(KEPT_HOST, 1, first, min(sizes.consumers, sizes.consumers_of_one - first)),
        )
    for first in range(0, sizes.reshaped, sizes.consumers):
        yield _json(
            "POST",
            "/allocations",
            consumers_on(CROWDED, 3, first, min(sizes.consumers, sizes.reshaped - first)),
        )
    for first in range(0, sizes.planned, sizes.consumers):
        yield _json(
            "POST",
            "/allocations",
            consumers_on(PLANNED, 7, first, min(sizes.consumers, sizes.planned - first)),
        )
    yield _json("PUT", f"/allocations/{CONSUMER.format(2, 0)}", allocations_of_one(sizes, None))


def consumers_on(provider: str, kind: int, first: int, count: int) -> dict[str, Any]:
    """Return consumers with one unit each."""
    return {
        CONSUMER.format(kind, n): {
            "allocations": {provider: {"resources": {"SRIOV_NET_VF": 1}}},
            "project_id": PROJECT,
            "user_id": USER,
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
        }
        for n in range(first, first + count)
    }


def allocations_of_one(sizes: Sizes, generation: int | None) -> dict[str, Any]:
    """Return the allocations of one consumer of many providers."""
    return {
        "allocations": {
            identifier(FLAT, n): {"resources": {"VCPU": 1}} for n in range(sizes.providers_of_one)
        },
        "project_id": PROJECT,
        "user_id": USER,
        "consumer_generation": generation,
        "consumer_type": "INSTANCE",
    }


def line(sizes: Sizes) -> Iterator[bytes]:
    """Return requests that create a waiting line."""
    yield _json(
        "PUT", f"/v1/pools/{POOL}", {"limit": 1, "ttl": 3600, "queue_max": 100_000, "pacing": None}
    )
    for n in range(sizes.tickets + 1):
        yield _json(
            "POST",
            "/v1/leases",
            {"needs": [{"pool": POOL}], "key": f"line-{n}", "patience": 3_600},
        )


def placement(sizes: Sizes) -> Iterator[Probe]:
    """Return a request to every route of the Placement API, as large as possible."""
    rp, one, new = "/resource_providers", "/resource_providers/{uuid}", identifier(8, 1)
    inventory, trait, word = f"{one}/inventories", "/traits/{name}", "/resource_classes/{name}"

    def asked(
        what: str, method: str, route: str, path: str, body: Any = None, version: str = "1.39"
    ) -> Probe:
        raw = b"" if body is None else json.dumps(body).encode()
        return Probe(what, method, route, request(method, path, raw, version))

    def at(path: str, uuid: str = KEPT_HOST) -> str:
        return path.replace("{uuid}", uuid)

    yield asked("versions", "GET", "/", "/")
    yield asked("all providers", "GET", rp, rp)
    yield asked("providers with capacity", "GET", rp, f"{rp}?resources=VCPU:1")
    yield asked("create", "POST", rp, rp, {"uuid": new, "name": "new"})
    yield asked("show", "GET", one, at(one))
    yield asked("rename", "PUT", one, at(one, new), {"name": "newer"})
    yield asked("usages of a provider", "GET", f"{one}/usages", at(f"{one}/usages"))
    many = f"{one}/allocations"
    yield asked(f"allocations of {sizes.consumers_of_one} consumers", "GET", many, at(many))
    aggregates = {"aggregates": [], "resource_provider_generation": 0}
    yield asked("aggregates", "GET", f"{one}/aggregates", at(f"{one}/aggregates"))
    yield asked("aggregates", "PUT", f"{one}/aggregates", at(f"{one}/aggregates", new), aggregates)
    of_wordy = at(f"{one}/traits", TRAITS_HOST)
    yield asked("traits of a provider", "GET", f"{one}/traits", of_wordy)
    names = [f"CUSTOM_WORD_{n:06d}" for n in range(sizes.custom_traits)]
    traits = {"traits": names, "resource_provider_generation": 1}
    yield asked(
        f"{sizes.custom_traits} traits", "PUT", f"{one}/traits", at(f"{one}/traits", new), traits
    )
    yield asked("no traits", "DELETE", f"{one}/traits", at(f"{one}/traits", new))
    held = {"resource_provider_generation": 3, "inventories": FLAT_HOST}
    yield asked("inventories", "GET", inventory, at(inventory))
    yield asked("inventories", "PUT", inventory, at(inventory, new), held)
    first = {"resource_class": "PCPU", "total": 9}
    yield asked("inventory", "POST", inventory, at(inventory, new), first)
    pcpu = inventory + "/{resource_class}"
    of_new = at(inventory, new) + "/PCPU"
    second = {"resource_provider_generation": 5, "total": 8}
    yield asked("inventory", "GET", pcpu, of_new)
    yield asked("inventory", "PUT", pcpu, of_new, second)
    yield asked("inventory", "DELETE", pcpu, of_new)
    yield asked("inventories", "DELETE", inventory, at(inventory, new))
    yield asked("delete", "DELETE", one, at(one, new))
    yield asked("classes", "GET", "/resource_classes", "/resource_classes")
    yield asked("class", "POST", "/resource_classes", "/resource_classes", {"name": "CUSTOM_NEW"})
    yield asked("class", "GET", word, "/resource_classes/CUSTOM_NEW")
    yield asked("rename", "PUT", word, "/resource_classes/CUSTOM_NEW", {"name": "CUSTOM_B"}, "1.2")
    yield asked("class", "PUT", word, "/resource_classes/CUSTOM_B")
    yield asked("class", "DELETE", word, "/resource_classes/CUSTOM_B")
    yield asked(f"{sizes.custom_traits} traits", "GET", "/traits", "/traits")
    yield asked("used traits", "GET", "/traits", "/traits?associated=true")
    yield asked("trait", "GET", trait, "/traits/CUSTOM_WORD_000001")
    yield asked("trait", "PUT", trait, "/traits/CUSTOM_NEW")
    yield asked("trait", "DELETE", trait, "/traits/CUSTOM_NEW")
    yield from _claims(asked, sizes)
    yield from _candidates(asked)


def _candidates(asked: Callable[..., Probe]) -> Iterator[Probe]:
    yield asked("candidates", "GET", "/allocation_candidates", CANDIDATES)
    ten = f"{CANDIDATES}&limit=10"
    yield asked("candidates limit=10", "GET", "/allocation_candidates", ten)
    thousand = f"{CANDIDATES}&limit=1000"
    yield asked("candidates limit=1000", "GET", "/allocation_candidates", thousand)
    unfit = "/allocation_candidates?resources=VCPU:1,MEMORY_MB:262144&limit=10"
    yield asked("candidates, nothing fits", "GET", "/allocation_candidates", unfit)


CANDIDATES = "/allocation_candidates?resources=VCPU:1,MEMORY_MB:512,DISK_GB:1"


def _claims(asked: Callable[..., Probe], sizes: Sizes) -> Iterator[Probe]:
    route, whole = "/allocations/{consumer}", f"/allocations/{CONSUMER.format(2, 0)}"
    yield asked(f"{sizes.providers_of_one} providers", "GET", route, whole)
    yield asked(
        f"{sizes.providers_of_one} providers", "PUT", route, whole, allocations_of_one(sizes, 1)
    )
    yield asked(f"{sizes.providers_of_one} providers", "DELETE", route, whole)
    yield asked(
        f"{sizes.providers_of_one} providers", "PUT", route, whole, allocations_of_one(sizes, None)
    )
    claims = consumers_on(CHURNED, 5, 0, sizes.consumers)
    yield asked(f"{sizes.consumers} consumers", "POST", "/allocations", "/allocations", claims)
    wrong = {**claims, CONSUMER.format(5, 99_999): 7}
    yield asked(
        f"{sizes.consumers} consumers, invalid", "POST", "/allocations", "/allocations", wrong
    )
    for each in claims.values():
        each["allocations"], each["consumer_generation"] = {}, 1
    yield asked(
        f"{sizes.consumers} consumers, released", "POST", "/allocations", "/allocations", claims
    )
    usages = f"/usages?project_id={PROJECT}"
    yield asked("usages", "GET", "/usages", usages)
    yield asked(f"{sizes.reshaped} consumers", "POST", "/reshaper", "/reshaper", reshaped(sizes, 1))
    worse = reshaped(sizes, 2)
    worse["allocations"][CONSUMER.format(5, 99_999)] = 7
    yield asked(f"{sizes.reshaped} consumers, invalid", "POST", "/reshaper", "/reshaper", worse)


def reshaped(sizes: Sizes, generation: int) -> dict[str, Any]:
    """Return the largest reshape: it changes the amounts of all consumers of a provider."""
    allocations = consumers_on(CROWDED, 3, 0, sizes.reshaped)
    for each in allocations.values():
        each["allocations"][CROWDED]["resources"]["SRIOV_NET_VF"] = generation + 1
        each["consumer_generation"] = generation
    inventories = {
        CROWDED: {
            "resource_provider_generation": 1 + -(-sizes.reshaped // sizes.consumers),
            "inventories": {"SRIOV_NET_VF": {"total": 2_000_000_000}},
        }
    }
    return {"inventories": inventories, "allocations": allocations}


def v1(sizes: Sizes) -> Iterator[Probe]:
    """Return a request to every route of the native API."""

    def asked(what: str, method: str, route: str, path: str = "", body: Any = None) -> Probe:
        return Probe(what, method, route, _json(method, path or route, body))

    question = {"groups": [{"resources": {"VCPU": 1, "MEMORY_MB": 262_144}}]}
    nested = {
        "groups": [
            {"suffix": "CPU", "resources": {"PCPU": 33, "MEMORY_MB": 512}},
            {"suffix": "NET", "resources": {"SRIOV_NET_VF": 1}},
        ]
    }
    encoded = quote(json.dumps(question))
    yield asked("tokens", "GET", "/v1/tokens")
    yield asked("token", "POST", "/v1/tokens", "", {"name": "held", "role": "reader"})
    yield asked("token", "DELETE", "/v1/tokens/{id}", "/v1/tokens/nobody")
    yield asked("token", "POST", "/v1/tokens/{id}/rotate", "/v1/tokens/nobody/rotate", {})
    yield asked("audit", "GET", "/v1/audit", "/v1/audit?limit=1000")
    yield asked("providers", "GET", "/v1/providers", "/v1/providers?limit=1000")
    provider, one = "/v1/providers/{id}", f"/v1/providers/{identifier(FLAT, 0)}"
    yield asked("provider", "GET", provider, one)
    yield asked("drain", "POST", f"{provider}/drain", f"{one}/drain", {"reason": "held"})
    yield asked("resume", "POST", f"{provider}/resume", f"{one}/resume", {})
    unknown = "/v1/providers/00000000-0000-4000-8000-000000000000"
    yield asked("provider", "DELETE", provider, unknown)
    yield asked("consumers", "GET", "/v1/consumers", "/v1/consumers?limit=1000")
    yield asked("consumer", "GET", "/v1/consumers/{id}", f"/v1/consumers/{CONSUMER.format(6, 0)}")
    for by in ("project", "user", "type", "class"):
        yield asked(f"by {by}", "GET", "/v1/usages", f"/v1/usages?limit=1000&by={by}")
    known = next(reports(Fleet("flat", sizes.unchanged)))
    yield Probe("nothing changed", "POST", native.BULK, known)
    yield asked("explain", "GET", "/v1/explain", f"/v1/explain?query={encoded}")
    yield asked("explain", "POST", "/v1/explain", "", nested)
    claim = {
        "groups": [{"resources": {"VCPU": 1, "MEMORY_MB": 512}}],
        "choose": "pack",
        "project_id": PROJECT,
        "user_id": USER,
    }
    for choose in ("random", "pack", "spread"):
        yield asked(choose, "POST", "/v1/claims", "", {**claim, "choose": choose})
    yield asked("nothing fits", "POST", "/v1/claims", "", {**claim, **question})
    yield asked("openapi", "GET", "/v1/openapi.json")
    yield asked("watch", "GET", "/v1/watch", "/v1/watch?after=1.0&limit=1000")
    for by in ("class", "trait", "aggregate"):
        yield asked(f"capacity by {by}", "GET", "/v1/capacity", f"/v1/capacity?by={by}")
    yield asked("find", "GET", "/v1/find", "/v1/find?text=no-such-name")
    yield from _callers(asked)
    yield from _admission(asked, sizes)
    yield from (*slots(asked), *bookings(asked))
    yield from fleet(asked)
    yield from reporters(asked)
    yield from imports(asked)
    guests = [CONSUMER.format(7, n) for n in range(sizes.planned)]
    yield from reshapes(asked, PLANNED, identifier(8, 2), guests, 1_000_000)
    yield from machine_plans(asked, PLANNED, "planned", guests, 1_000_000)
    yield asked("check", "POST", "/v1/database/check")
    yield asked("backup", "POST", "/v1/database/backup", "", {"name": "held.copy"})
    yield asked("new epoch", "POST", "/v1/database/epoch")


def _callers(asked: Callable[..., Probe]) -> Iterator[Probe]:
    yield asked("whoami", "GET", "/v1/whoami")
    yield asked("link for a foreign token", "POST", "/v1/sign-in-links")


def _admission(asked: Callable[..., Probe], sizes: Sizes) -> Iterator[Probe]:
    pool, small = "/v1/pools/{name+}", "/v1/pools/bench/small"
    lease = "/v1/leases/{id}"
    nobody = "/v1/leases/00000000-0000-4000-8000-000000000000"
    yield asked("pools", "GET", "/v1/pools")
    yield asked("pool", "PUT", pool, small, {"limit": 1, "ttl": 60, "pacing": None})
    yield asked(f"pool, {sizes.tickets} waiting", "GET", pool, f"/v1/pools/{POOL}")
    for word in ("pause", "resume"):
        yield asked(word, "POST", f"{pool}:{word}", f"/v1/pools/{POOL}:{word}")
    yield asked("report", "GET", f"{pool}:report", f"/v1/pools/{POOL}:report")
    contents = f"/v1/pools/{POOL}:contents"
    yield asked("contents", "GET", f"{pool}:contents", contents)
    yield asked("most", "GET", f"{pool}:contents", f"{contents}?leases=1000&tickets=1000")
    history = f"/v1/pools/{POOL}:history?points=1000"
    yield asked("history", "GET", f"{pool}:history", history)
    scenes = {"scenes": [{"limit": 1}, {"limit": 9, "pacing": None}]}
    yield asked("rehearse", "POST", f"{pool}:rehearse", f"/v1/pools/{POOL}:rehearse", scenes)
    yield asked("delete", "DELETE", pool, small)
    template, made = "/v1/pool-templates/{name+}", "/v1/pool-templates/bench/made/*"
    yield asked("template", "PUT", template, made, {"pool": {"limit": 1}})
    yield asked("show", "GET", template, made)
    yield asked("templates", "GET", "/v1/pool-templates")
    yield asked("delete", "DELETE", template, made)
    yield asked("leases", "GET", "/v1/leases", "/v1/leases?limit=1000")
    waiting = f"/v1/leases?limit=1000&pool={quote(POOL, safe='')}&state=waiting"
    yield asked("waiting leases", "GET", "/v1/leases", waiting)
    ask_one = {"needs": [{"pool": POOL}], "key": "line-held", "patience": 3_600}
    yield asked("ticket", "POST", "/v1/leases", "", ask_one)
    yield asked(
        "verify",
        "GET",
        "/v1/leases/verify",
        f"/v1/leases/verify?pool={quote(POOL, safe='')}&token=1.1.0",
    )
    yield asked("show", "GET", lease, nobody)
    yield asked("release", "DELETE", lease, nobody)
    yield asked("hold", "PATCH", lease, nobody, {"hold": 1})
    recorded = {"version": 0, "record": {}}
    yield asked("record", "PUT", f"{lease}/record", f"{nobody}/record", recorded)
    yield asked("renew", "POST", f"{lease}/renew", f"{nobody}/renew", {})
    yield asked("retry", "POST", f"{lease}/retry", f"{nobody}/retry", {})
    yield asked("outcome", "POST", f"{lease}/outcome", f"{nobody}/outcome", {"result": "ok"})
    yield asked("revoke", "POST", f"{lease}/revoke", f"{nobody}/revoke", {"reason": "held"})
    yield asked("revoke owner", "POST", "/v1/leases/revoke", "", {"owner": "nobody"})
    yield asked("keep", "POST", f"{lease}/keep", f"{nobody}/keep", {"lasts": 1})
    yield asked("offer", "POST", f"{lease}/offer", f"{nobody}/offer", {"to": "somebody"})
    yield asked("withdraw", "DELETE", f"{lease}/offer", f"{nobody}/offer")
    yield asked("accept", "POST", f"{lease}/accept", f"{nobody}/accept", {"key": "held"})
    yield asked("decline", "POST", f"{lease}/decline", f"{nobody}/decline")
    yield asked("move", "POST", f"{lease}/move", f"{nobody}/move", {"first": True})
    yield asked("force", "POST", f"{lease}/force", f"{nobody}/force")
    tuned = {"action": "pool.tune", "target": POOL, "limit": 9}
    yield asked("preview", "POST", "/v1/actions/preview", "", tuned)
    yield asked(
        "act: nothing fits what was shown",
        "POST",
        "/v1/actions",
        "",
        {**tuned, "digest": "another"},
    )


def plain() -> Iterator[Probe]:
    """Return the requests that need no token."""
    for path in ("/healthz", "/readyz", "/metrics"):
        yield Probe(path, "GET", path, request("GET", path))


def churn(sizes: Sizes) -> Iterator[bytes]:
    """Return a request that changes many providers of the fleet."""
    yield _json("PUT", f"/allocations/{CONSUMER.format(6, 0)}", allocations_of_one(sizes, None))


def all_probes(sizes: Sizes, session: Session = NOBODY) -> list[Probe]:
    """Return all probes; each depends on those before it. Pages need a session."""
    shown = pages(Probe, session, POOL, identifier(FLAT, 0))
    return [*placement(sizes), *v1(sizes), *plain(), *shown]


def missing(probes: Iterable[Probe]) -> list[str]:
    """Return the routes and pages that no probe uses."""
    asked = {(one.method, one.route) for one in probes}
    there = {(one.method, one.path) for one in routes()}
    there |= paths() | {(one.method, one.path) for one in operations_by_id().values()}
    return sorted(f"{method} {path}" for method, path in there - asked)
