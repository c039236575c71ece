"""Providers and consumers for operators: filters, pages, draining, deleting, on both engines."""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from moorage.serve.files import Files
from moorage.service.ledger import queries
from tests.e2e.support.server import serve
from tests.faces.v1.fleet.machine import Machine
from tests.faces.v1.leasing import refused
from tests.faces.v1.native import Native, Response
from tests.support import cluster

NEWEST = {"OpenStack_API_Version": "placement 1.39"}


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def native(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Native]:
    """Return a caller of an empty server on each engine."""
    folder = tmp_path_factory.mktemp("operators")
    shared = request.param == "postgresql"
    database = cluster.fresh() if shared else f"sqlite:///{folder}/moorage.sqlite"
    with serve(database, "--no-access-log", XDG_STATE_HOME=str(folder)) as server:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("XDG_STATE_HOME", str(folder))
            token = Files(database).token
        yield Native(server.url, token.with_name(token.name.removesuffix(".token")))


def host(native: Native, parent: str | None = None, **totals: int) -> tuple[str, str]:
    """Create a provider; return its UUID and its name."""
    uuid = str(uuid4())
    body: dict[str, Any] = {"uuid": uuid, "name": f"host-{uuid}"}
    if parent is not None:
        body["parent_provider_uuid"] = parent
    assert native.ask("POST", "/resource_providers", body, **NEWEST).status == 200
    stock = {name: {"total": total} for name, total in (totals or {"VCPU": 8}).items()}
    path = f"/resource_providers/{uuid}/inventories"
    body = {"resource_provider_generation": 0, "inventories": stock}
    assert native.ask("PUT", path, body, **NEWEST).status == 200
    return uuid, f"host-{uuid}"


def claim(native: Native, provider: str, consumer: str = "", **more: Any) -> Response:
    """Allocate a processor; return the answer."""
    body = {
        "allocations": {provider: {"resources": {"VCPU": 1}}},
        "project_id": "p",
        "user_id": "u",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
        **more,
    }
    return native.ask("PUT", f"/allocations/{consumer or uuid4()}", body, **NEWEST)


def used_by(native: Native, query: str) -> list[str]:
    """Return the consumers of all pages."""
    found, cursor = [], ""
    while True:
        page = native.ask("GET", f"/v1/consumers?{query}{cursor}")
        assert page.status == 200, page
        found += [one["uuid"] for one in page.body["consumers"]]
        if page.body["next"] is None:
            return found
        cursor = f"&cursor={page.body['next']}"


def candidates(native: Native, provider: str) -> int:
    """Return how many candidates the tree of a provider has."""
    query = f"/allocation_candidates?resources=VCPU:1&in_tree={provider}"
    found = native.ask("GET", query, **NEWEST)
    return len(found.body["allocation_requests"])


def test_a_provider_is_found_by_name_and_by_the_beginning_of_its_uuid(native: Native) -> None:
    """A wrong name finds nothing, a short beginning is refused."""
    uuid, name = host(native)
    for query in (f"name={name}", f"id_prefix={uuid[:13]}", f"id_prefix={uuid}"):
        found = native.ask("GET", f"/v1/providers?{query}")
        assert [one["uuid"] for one in found.body["providers"]] == [uuid], query
        assert found.body["next"] is None
        assert found.body["as_of"]
    assert native.ask("GET", f"/v1/providers?name={name}x").body["providers"] == []
    assert refused(native.ask("GET", "/v1/providers?id_prefix=6e")) == (400, "invalid")
    assert native.ask("GET", f"/v1/providers/{uuid.upper()}").body["name"] == name
    assert refused(native.ask("GET", f"/v1/providers/{uuid4()}")) == (404, "provider_not_found")
    assert refused(native.ask("GET", "/v1/providers/x")) == (400, "invalid")


def test_the_providers_of_a_tree(native: Native) -> None:
    """Wherever the named one stands in it, page by page, and no provider of another tree."""
    root, _ = host(native)
    child, name = host(native, root)
    below, _ = host(native, child)
    host(native)
    tree = sorted((root, child, below))
    for one in tree:
        for limit in (1, 2, 3, 100):
            found, cursor = [], ""
            while True:
                query = f"tree={one.upper()}&limit={limit}{cursor}"
                page = native.ask("GET", f"/v1/providers?{query}").body
                found += [each["uuid"] for each in page["providers"]]
                if page["next"] is None:
                    break
                cursor = f"&cursor={page['next']}"
            assert found == tree
    for more in (f"name={name}", f"id_prefix={child}"):
        page = native.ask("GET", f"/v1/providers?tree={root}&{more}").body
        assert [each["uuid"] for each in page["providers"]] == [child]
    unknown = native.ask("GET", f"/v1/providers?tree={uuid4()}")
    assert refused(unknown) == (404, "provider_not_found")
    assert native.ask("GET", "/v1/providers?tree=x").status == 400
    assert native.ask("GET", f"/v1/providers?tree={root}&limit=0").status == 400


def test_what_is_free_follows_the_ratio_and_what_is_offered(native: Native) -> None:
    """Of the capacity, not of the total; nothing of a drained provider is."""
    root, _ = host(native, None, VCPU=10)
    body = {
        "resource_provider_generation": 1,
        "inventories": {"VCPU": {"total": 10, "reserved": 2, "allocation_ratio": 1.5}},
    }
    path = f"/resource_providers/{root}/inventories"
    assert native.ask("PUT", path, body, **NEWEST).status == 200
    assert claim(native, root).status == 204

    def figures() -> tuple[int, int, int]:
        one = native.ask("GET", f"/v1/providers/{root}").body["inventories"]["VCPU"]
        return one["capacity"], one["used"], one["free"]

    assert figures() == (12, 1, 11)
    native.ask("POST", f"/v1/providers/{root}/drain")
    assert figures() == (0, 1, 0)


def test_the_lease_of_a_consumer(native: Native) -> None:
    """Found by the consumer among leases with other allocations and without; also as a ticket."""
    root, _ = host(native, None, VCPU=2)
    pool = f"pool-{root}"
    assert native.ask("PUT", f"/v1/pools/{pool}", {"limit": 9}).status == 200

    def lease(consumer: str | None, units: int = 1) -> str:
        held = {
            "consumer": consumer,
            "allocations": {root: {"VCPU": units}},
            "project_id": "p",
            "user_id": "u",
        }
        body = {
            "needs": [{"pool": pool}],
            "key": str(uuid4()),
            "allocations": None if consumer is None else held,
            "labels": {"about": consumer or ""},
        }
        answer = native.ask("POST", "/v1/leases", body)
        assert answer.status in (201, 202), answer
        return str(answer.body["id"])

    guest, other, waiting = (str(uuid4()) for _ in range(3))
    named = {guest: lease(guest), other: lease(other), waiting: lease(waiting, 2)}
    lease(None)
    for consumer, wanted in named.items():
        for state in ("", "&state=waiting" if consumer == waiting else "&state=granted"):
            query = f"consumer={consumer.upper()}{state}"
            found = native.ask("GET", f"/v1/leases?{query}").body["leases"]
            assert [one["id"] for one in found] == [wanted], query
    assert native.ask("GET", f"/v1/leases?consumer={uuid4()}").body["leases"] == []
    assert len(native.ask("GET", f"/v1/leases?machine={root}").body["leases"]) == 3
    scoped = {"name": "sweeper", "role": "janitor", "scope": {"pool": [pool]}}
    janitor = native.ask("POST", "/v1/tokens", scoped).body["token"]
    for token in (native.token("reader", "p"), native.token("user", "p"), janitor):
        # It would say who is placed where, which no list shows to them.
        listed = f"/v1/leases?pool={pool}"
        assert len(native.ask("GET", listed, token=token).body["leases"]) == 4
        assert native.ask("GET", f"{listed}&machine={root}", token=token).body["leases"] == []
        refused = native.ask("GET", f"{listed}&consumer={guest}", token=token)
        assert (refused.status, refused.body["code"]) == (403, "forbidden")
    assert native.ask("GET", "/v1/leases?consumer=x").status == 400


def test_nothing_new_lands_on_a_drained_tree(native: Native) -> None:
    """Also below it, on what is created later, and after figures were written; guests may leave."""
    root, _ = host(native)
    child, _ = host(native, root)
    guest = str(uuid4())
    assert claim(native, root, guest).status == 204
    done = native.ask("POST", f"/v1/providers/{root}/drain", {"reason": "new disks"})
    assert done.body["withheld"] == "drained: new disks"
    generation = done.body["generation"]
    later, _ = host(native, root)
    body = {
        "resource_provider_generation": generation,
        "inventories": {"VCPU": {"total": 64, "allocation_ratio": 16.0}},
    }
    path = f"/resource_providers/{root}/inventories"
    assert native.ask("PUT", path, body, **NEWEST).status == 200
    for one in (root, child, later):
        assert candidates(native, one) == 0
        assert claim(native, one).status == 409
        shown = native.ask("GET", f"/v1/providers/{one}").body
        assert shown["withheld"] == "drained: new disks"
    again = {"consumer_generation": 1}
    assert claim(native, root, guest, **again).status == 204, "what is there may be written again"
    migration = str(uuid4())
    held = {"resources": {"VCPU": 1}}
    about = {"project_id": "p", "user_id": "u", "consumer_type": "MIGRATION"}
    moved = {
        migration: {"allocations": {root: held}, "consumer_generation": None, **about},
        guest: {"allocations": {}, "consumer_generation": 2, **about},
    }
    assert native.ask("POST", "/allocations", moved, **NEWEST).status == 204, "a guest may leave"
    assert native.ask("POST", "/v1/database/check", {}).body["differences"] == []
    opened = native.ask("POST", f"/v1/providers/{root}/resume")
    assert opened.body["withheld"] is None
    assert all(candidates(native, one) for one in (root, child, later))
    assert native.ask("POST", "/v1/database/check", {}).body["differences"] == []


def test_what_is_drained_below_stays_so(native: Native) -> None:
    """Its own drain ends only by its own undo; one above holds for it as well."""
    root, _ = host(native)
    child, _ = host(native, root)
    native.ask("POST", f"/v1/providers/{child}/drain", {"reason": "own"})
    native.ask("POST", f"/v1/providers/{root}/drain")
    native.ask("POST", f"/v1/providers/{root}/resume")
    assert native.ask("GET", f"/v1/providers/{child}").body["withheld"] == "drained: own"
    native.ask("POST", f"/v1/providers/{root}/drain")
    still = native.ask("POST", f"/v1/providers/{child}/resume").body
    assert still["withheld"] == "drained", "the one above is still drained"
    unchanged = native.ask("POST", f"/v1/providers/{child}/resume").body
    assert unchanged == still
    assert native.ask("POST", "/v1/database/check", {}).body["differences"] == []


def test_actions_are_audited_and_repeats_are_not(native: Native) -> None:
    """By whom, why, and what was before. They have the name of their target while it is known."""
    root, name = host(native)
    for _ in range(2):
        native.ask("POST", f"/v1/providers/{root}/drain", {"reason": "r"})
    (drained,) = native.ask("GET", f"/v1/audit?target={root}").body["entries"]
    assert drained["name"] == name
    native.ask("POST", f"/v1/providers/{root}/resume", {"reason": "done"})
    assert native.ask("DELETE", f"/v1/providers/{root}?reason=gone").status == 204
    entries = native.ask("GET", f"/v1/audit?target={root}").body["entries"]
    assert [one["action"] for one in entries] == [
        "provider.delete",
        "provider.resume",
        "provider.drain",
    ]
    assert entries[0]["before"] == {"name": name}
    assert [one["name"] for one in entries] == [name, None, None]
    assert [one["after"]["reason"] for one in entries] == ["gone", "done", "r"]


def test_a_provider_in_use_is_not_deleted(native: Native) -> None:
    """Nor one with children; a reason that is too long or hides something is refused."""
    root, _ = host(native)
    child, _ = host(native, root)
    assert refused(native.ask("DELETE", f"/v1/providers/{root}"))[0] == 409
    claim(native, child)
    assert refused(native.ask("DELETE", f"/v1/providers/{child}")) == (409, "provider_in_use")
    for reason in ("x" * 1_001, "a\u202eb", "a\nb"):
        answer = native.ask("POST", f"/v1/providers/{root}/drain", {"reason": reason})
        assert refused(answer) == (400, "invalid"), reason


def test_an_agents_machine_is_drained_by_its_agent(native: Native) -> None:
    """The refusal says how."""
    root, _ = host(native)
    machine = Machine(native)
    assert machine.put(root=root).status == machine.register(root=root).status == 200
    for one in (root, machine.part):
        answer = native.ask("POST", f"/v1/providers/{one}/drain")
        assert refused(answer) == (409, "class_managed")
        assert f"Agent {machine.uuid} manages" in answer.body["detail"]
        assert "drain or resume the agent" in answer.body["detail"]


@pytest.mark.parametrize("place", ["root", "rack"])
def test_no_message_of_an_agent_opens_what_is_drained(native: Native, place: str) -> None:
    """It was drained before the agent came, and stays so until an operator resumes it."""
    rack, _ = host(native)
    root, _ = host(native, rack)
    drained = root if place == "root" else rack
    machine = Machine(native)
    assert native.ask("POST", f"/v1/providers/{drained}/drain", {"reason": "disks"}).status == 200
    assert machine.put(root=root).status == machine.register(root=root).status == 200
    assert machine.report().status == 200
    machine.boot = "boot-2"
    assert machine.register(root=root).status == 200
    for word in ("drain", "resume"):
        assert machine.operate(word).status == 200
    for one in (root, machine.part):
        shown = native.ask("GET", f"/v1/providers/{one}").body
        assert shown["withheld"] == "drained: disks"
    opened = native.ask("POST", f"/v1/providers/{drained}/resume")
    assert (opened.status, opened.body["withheld"]) == (200, None)
    assert candidates(native, root) == 2, "the rack and its host"
    assert native.ask("POST", "/v1/database/check", {}).body["differences"] == []


def test_what_is_resumed_is_as_its_agent_says(native: Native) -> None:
    """An operator's drain of the machine outlasts that of its root, and the other way round."""
    root, _ = host(native)
    machine = Machine(native)
    assert machine.put(root=root).status == machine.register(root=root, parts=[]).status == 200
    assert native.ask("POST", f"/v1/providers/{root}/drain").status == 200
    assert machine.operate("drain").status == 200
    opened = native.ask("POST", f"/v1/providers/{root}/resume")
    assert opened.body["withheld"] == "no_provision"
    assert candidates(native, root) == 0
    entry = native.ask("GET", f"/v1/audit?target={root}").body["entries"][0]
    assert entry["after"]["withheld"] == "no_provision"
    assert machine.operate("resume").status == 200
    assert candidates(native, root) == 1
    assert native.ask("POST", "/v1/database/check", {}).body["differences"] == []


def test_consumers_are_found_by_what_they_are(native: Native) -> None:
    """By project, user, type, provider, age and the beginning of the UUID, alone and together."""
    root, name = host(native, None, VCPU=64)
    other, _ = host(native)
    project = f"project-{root}"
    mine = sorted(str(uuid4()) for _ in range(5))
    for one in mine:
        assert claim(native, root, one, project_id=project, user_id="alice").status == 204
    old = str(uuid4())
    untyped = {
        "allocations": {other: {"resources": {"VCPU": 1}}},
        "project_id": project,
        "user_id": "bob",
        "consumer_generation": None,
    }
    older = {"OpenStack_API_Version": "placement 1.28"}
    assert native.ask("PUT", f"/allocations/{old}", untyped, **older).status == 204
    assert used_by(native, f"provider={root}") == mine
    assert used_by(native, f"provider={root}&limit=2") == mine
    assert used_by(native, f"project={project}&limit=2") == sorted([*mine, old])
    assert used_by(native, f"project={project}&user=bob") == [old]
    assert used_by(native, f"project={project}&type=unknown") == [old]
    assert used_by(native, f"project={project}&type=INSTANCE") == mine
    assert used_by(native, f"project={project}&older=3600") == []
    assert used_by(native, f"project={project}&older=0") == sorted([*mine, old])
    assert used_by(native, f"provider={root}&user=bob") == []
    for one in mine:
        assert used_by(native, f"id_prefix={one[:13]}") == [one]
        assert used_by(native, f"id_prefix={one}") == [one]
    one = native.ask("GET", f"/v1/consumers/{mine[0]}").body
    assert one["allocations"] == [{"provider": root, "name": name, "resources": {"VCPU": 1}}]
    assert (one["project"], one["user"], one["type"]) == (project, "alice", "INSTANCE")
    assert refused(native.ask("GET", f"/v1/consumers/{uuid4()}")) == (
        404,
        "allocations_not_found",
    )
    for query in ("older=-1", "provider=x", "limit=0", "limit=1001", "id_prefix=6e", "x=1"):
        assert native.ask("GET", f"/v1/consumers?{query}").status == 400, query


def test_a_page_looks_at_a_bounded_number(native: Native) -> None:
    """A rare consumer among many is found over several pages, and never skipped."""
    root, _ = host(native, None, VCPU=1_000_000)
    count = queries.LOOKED_AT_MAX + 50
    project = f"many-{root}"
    uuids = sorted(str(uuid4()) for _ in range(count))
    about = {"user_id": "u", "consumer_generation": None, "consumer_type": "INSTANCE"}
    for first in range(0, count, 500):
        body = {
            one: {
                "allocations": {root: {"resources": {"VCPU": 1}}},
                "project_id": project,
                **about,
                "user_id": "rare" if one == uuids[-1] else "u",
            }
            for one in uuids[first : first + 500]
        }
        assert native.ask("POST", "/allocations", body, **NEWEST).status == 204
    for query in (f"project={project}", f"provider={root}"):
        assert used_by(native, f"{query}&user=rare") == [uuids[-1]]
        assert used_by(native, f"{query}&limit=1000") == uuids
        page = native.ask("GET", f"/v1/consumers?{query}&user=rare").body
        assert page["consumers"] == []
        assert page["next"] == uuids[queries.LOOKED_AT_MAX - 1]
