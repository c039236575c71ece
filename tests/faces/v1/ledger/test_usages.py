"""Sums of what consumers hold, against the list of consumers, on both engines."""

from collections import Counter
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

import pytest

from moorage.serve.files import Files
from tests.e2e.support.server import serve
from tests.faces.v1.leasing import refused
from tests.faces.v1.native import Native
from tests.support import cluster

NEWEST = {"OpenStack_API_Version": "placement 1.39"}
UNTYPED = {"OpenStack_API_Version": "placement 1.28"}
STRANGE = 'ü/["x",\\'
"""A name that cursors must carry."""

FIELDS = {
    "project": ("project",),
    "user": ("project", "user"),
    "type": ("type",),
    "class": ("resource_class",),
}


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def native(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Native]:
    """Return a caller of a server on each engine, with consumers of all kinds."""
    folder = tmp_path_factory.mktemp("usages")
    shared = request.param == "postgresql"
    database = cluster.fresh() if shared else f"sqlite:///{folder}/moorage.sqlite"
    with serve(database, "--no-access-log", XDG_STATE_HOME=str(folder)) as server:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("XDG_STATE_HOME", str(folder))
            token = Files(database).token
        made = Native(server.url, token.with_name(token.name.removesuffix(".token")))
        fill(made)
        yield made


def fill(native: Native) -> None:
    """Let projects, users and types hold some of three classes on two providers."""
    hosts = sorted(str(uuid4()) for _ in range(2))
    stock = {name: {"total": 10_000} for name in ("VCPU", "MEMORY_MB", "DISK_GB")}
    providers = [{"uuid": one, "name": one, "inventories": stock} for one in hosts]
    wanted = {"providers": providers}
    assert native.ask("POST", "/v1/providers:bulk", wanted).body["created"] == 2
    for number in range(24):
        resources = {"VCPU": 1 + number, **({"MEMORY_MB": 64} if number % 3 else {})}
        both = number % 4 == 0
        kind = (None, "INSTANCE", "MIGRATION")[number % 3 if number % 5 else 0]
        body: dict[str, Any] = {
            "allocations": {one: {"resources": resources} for one in hosts[: 1 + both]},
            "project_id": ("p0", "p1", STRANGE)[number % 3],
            "user_id": ("u0", "u1", STRANGE)[number // 3 % 3],
            "consumer_generation": None,
        }
        version = UNTYPED if kind is None else NEWEST
        body |= {} if kind is None else {"consumer_type": kind}
        assert native.ask("PUT", f"/allocations/{uuid4()}", body, **version).status == 204


def lines(native: Native, limit: int = 100, token: str | None = None, **asked: str) -> Any:
    """Return the lines of all pages."""
    found: list[dict[str, Any]] = []
    query = {**asked, "limit": str(limit)}
    while True:
        page = native.ask("GET", f"/v1/usages?{urlencode(query)}", token=token)
        assert page.status == 200, page
        assert len(page.body["lines"]) <= limit
        found += page.body["lines"]
        if page.body["next"] is None:
            return found
        query["cursor"] = page.body["next"]


def expected(native: Native, by: str, **wanted: str) -> list[dict[str, Any]]:
    """Return the lines as the list of consumers has them."""
    sums: dict[tuple[str, ...], Counter[str]] = {}
    counts: Counter[tuple[str, ...]] = Counter()
    only = wanted.get("resource_class")
    for one in native.ask("GET", "/v1/consumers?limit=1000").body["consumers"]:
        facts = {**one, "type": one["type"] or "unknown"}
        if any(facts[name] != text for name, text in wanted.items() if name != "resource_class"):
            continue
        held: Counter[str] = Counter()
        for place in one["allocations"]:
            held.update(place["resources"])
        if only is not None:
            held = Counter({only: held[only]} if only in held else {})
        for name, amount in held.items():
            key = (name,) if by == "class" else tuple(facts[field] for field in FIELDS[by])
            sums.setdefault(key, Counter())[name] += amount
        keys = [(name,) for name in held] if by == "class" else []
        if by != "class" and held:
            keys = [tuple(facts[field] for field in FIELDS[by])]
        counts.update(keys)
    empty = dict.fromkeys(("project", "user", "type", "resource_class"))
    return [
        {
            **empty,
            **dict(zip(FIELDS[by], key, strict=True)),
            "consumers": counts[key],
            "resources": dict(amounts),
        }
        for key, amounts in sorted(sums.items(), key=lambda item: [n.encode() for n in item[0]])
    ]


FILTERS: tuple[dict[str, str], ...] = (
    {},
    {"project": "p1"},
    {"project": STRANGE, "user": STRANGE},
    {"project": "nobody"},
    {"user": "u1"},
    {"type": "INSTANCE"},
    {"type": "unknown"},
    {"resource_class": "MEMORY_MB"},
    {"resource_class": "DISK_GB"},
    {"project": "p1", "user": "u1", "type": "INSTANCE", "resource_class": "VCPU"},
)


@pytest.mark.parametrize("wanted", FILTERS, ids=str)
@pytest.mark.parametrize("by", [*FIELDS])
def test_sums_are_those_of_the_consumers(native: Native, by: str, wanted: dict[str, str]) -> None:
    """Each consumer counts once in its line, also one on two providers; pages lose nothing."""
    whole = expected(native, by, **wanted)
    for limit in (1, 2, 100):
        assert lines(native, limit, by=by, **wanted) == whole, limit
    assert bool(whole) == (
        "nobody" not in wanted.values() and wanted.get("resource_class") != "DISK_GB"
    )


def test_figures_are_of_one_revision(native: Native) -> None:
    """The cursor of an answer is that of the last change; a page after a claim has it."""
    before = native.ask("GET", "/v1/usages?by=class").body
    assert before["as_of"] == native.ask("GET", "/v1/capacity").body["as_of"]
    claim = {"project_id": "new", "user_id": "u", "groups": [{"resources": {"DISK_GB": 3}}]}
    made = native.ask("POST", "/v1/claims", claim).body
    after = native.ask("GET", "/v1/usages?by=project&project=new").body
    assert after["lines"][0]["resources"] == {"DISK_GB": 3}
    changes = native.ask("GET", f"/v1/watch?wait=0&after={before['as_of']}").body
    assert changes["changes"] and changes["next"] == after["as_of"]
    end = "/allocations/" + made["consumer"]
    assert native.ask("DELETE", end, OpenStack_API_Version="placement 1.28").status == 204
    assert lines(native, project="new") == []


def test_a_project_sees_only_its_own(native: Native) -> None:
    """Also by class and type; another project is refused, whatever is asked beside it."""
    bound = native.token("reader", project="p1", name="bound")
    for by in FIELDS:
        assert lines(native, 1, bound, by=by) == expected(native, by, project="p1")
    assert lines(native, token=bound, by="user", user="u1") == expected(
        native, "user", project="p1", user="u1"
    )
    answer = native.ask("GET", "/v1/usages?project=p0", token=bound)
    assert refused(answer) == (403, "forbidden")
    cursor = urlencode({"cursor": '["p0","u0"]', "by": "user"})
    after = native.ask("GET", f"/v1/usages?{cursor}", token=bound).body["lines"]
    assert {one["project"] for one in after} == {"p1"}
    beyond = urlencode({"cursor": '["p2",""]', "by": "user"})
    assert native.ask("GET", f"/v1/usages?{beyond}", token=bound).body["lines"] == []


@pytest.mark.parametrize(
    "query",
    [
        *("limit=0", "limit=1001", "by=host", "x=1", "cursor=p1", "cursor=[]", "cursor=[1,2]"),
        *("cursor=%5B%22a%22%5D", "cursor=%5B%22%5Cu0000%22,%22%22%5D", "cursor=" + "[" * 9_000),
        "cursor=%5B%22%5Cud800%22,%22%22%5D",
    ],
)
def test_what_is_not_a_page_is_refused(native: Native, query: str) -> None:
    """A cursor of another list, or of nobody, too."""
    assert native.ask("GET", f"/v1/usages?{query}").status == 400, query
