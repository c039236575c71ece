"""Reporters over HTTP: what a token may do in its group and elsewhere, answers and refusals."""

from typing import Any
from uuid import uuid4

import pytest

from moorage.core.limits import BULK_PROVIDERS_MAX, PROVIDER_BYTES_MAX, REPORTED_NAMES_MAX
from tests.faces.v1.native import Native, Response

PLACEMENT = {"OpenStack_API_Version": "placement 1.39"}


class Group:
    """A new group of reporters, with a token of the role `reporter` for it."""

    def __init__(self, native: Native) -> None:
        self.native = native
        self.name = f"g-{uuid4()}"
        self.secret = reporter(native, self.name)
        self.instance = str(uuid4())
        self.token = ""

    @property
    def path(self) -> str:
        """The address of the group."""
        return f"/v1/reporter-groups/{self.name}"

    def ask(self, method: str, path: str, body: Any = None) -> Response:
        """Send a request as the reporter."""
        return self.native.ask(method, path, body, token=self.secret)

    def join(self, member: str = "a", **more: Any) -> Response:
        """Let a member join."""
        body = {"instance": self.instance, **more}
        answer = self.ask("PUT", f"{self.path}/members/{member}", body)
        if answer.status == 200:
            self.token = answer.body["token"]
        return answer

    def report(self, *nodes: dict[str, Any], **more: Any) -> Response:
        """Send a report as member `a`."""
        body = {"group": self.name, "member": "a", "token": self.token, "nodes": nodes}
        return self.ask("POST", "/v1/reports", {**body, **more})


def reporter(native: Native, *groups: str) -> str:
    """Create a token of a reporter; return its secret."""
    wanted = {"name": "reporter", "role": "reporter", "scope": {"group": groups}}
    secret: str = native.ask("POST", "/v1/tokens", wanted).body["token"]
    return secret


def node(**more: Any) -> dict[str, Any]:
    """Describe a new node."""
    uuid = str(uuid4())
    whole = {
        "uuid": uuid,
        "name": f"node-{uuid}",
        "inventories": {"CUSTOM_BAREMETAL_GOLD": {"total": 1}},
        "traits": ["CUSTOM_RACK_7"],
        "aggregates": [],
    }
    return {**whole, **more}


@pytest.fixture
def group(native: Native) -> Group:
    """Return a new group."""
    return Group(native)


def traits_of(native: Native, uuid: str) -> list[str]:
    """Return the traits of a provider, by the Placement API."""
    answer = native.ask("GET", f"/resource_providers/{uuid}/traits", **PLACEMENT)
    traits: list[str] = answer.body["traits"]
    return traits


def test_a_reporter_at_work(group: Group, native: Native) -> None:
    """It joins, reports, and leaves; Placement shows what it has reported."""
    joined = group.join()
    assert joined.body == {
        "token": joined.body["token"],
        "ttl": 30.0,
        "members": ["a"],
        "pins_generation": 0,
    }
    one, other = node(), node()
    made = group.report(one, other)
    assert made.status == 200, made
    assert [each["outcome"] for each in made.body["results"]] == ["created"] * 2
    assert made.body["created"] == 2
    assert traits_of(native, one["uuid"]) == ["CUSTOM_RACK_7"]
    same = group.report({**one, "uuid": one["uuid"].upper()}, other)
    assert same.body["unchanged"] == 2
    gone = group.report({"uuid": one["uuid"], "seen": "absent"}, {**other, "traits": []})
    assert [each["outcome"] for each in gone.body["results"]] == ["removed", "updated"]
    assert traits_of(native, other["uuid"]) == []
    assert native.ask("GET", f"/resource_providers/{one['uuid']}", **PLACEMENT).status == 404
    shown = group.ask("GET", group.path).body
    (member,) = shown["members"]
    assert (member["name"], member["live"], member["instance"]) == ("a", True, group.instance)
    assert "token" not in member
    left = group.ask("DELETE", f"{group.path}/members/a?instance={group.instance}")
    assert left.status == 204
    refused = group.report(other)
    assert (refused.status, refused.body["code"]) == (409, "fenced")


def test_a_token_of_another_group_may_do_nothing(group: Group, native: Native) -> None:
    """A reporter's token is for its groups only, and for nothing else."""
    group.join()
    stranger = reporter(native, "other")
    body = {"group": group.name, "member": "a", "token": group.token, "nodes": []}
    seen = {"members": [], "seen_at": "2026-01-01T00:00:00Z"}
    pins = {"nodes": [str(uuid4())], "member": "a"}
    for method, path, sent in (
        ("PUT", f"{group.path}/members/a", {"instance": str(uuid4())}),
        ("DELETE", f"{group.path}/members/a", None),
        ("PUT", f"{group.path}/observed", seen),
        ("GET", group.path, None),
        ("GET", f"{group.path}/pins", None),
        ("GET", f"{group.path}/nodes", None),
        ("GET", f"{group.path}/ghosts", None),
        ("POST", "/v1/reports", body),
    ):
        answer = native.ask(method, path, sent, token=stranger)
        assert (answer.status, answer.body["code"]) == (403, "forbidden"), path
        assert group.ask(method, path, sent).status in (200, 204), path
        group.join()
        body["token"] = group.token
    for method, path, sent in (
        ("GET", "/v1/reporter-groups", None),
        ("POST", f"{group.path}/pins", pins),
        ("GET", "/v1/providers", None),
        ("POST", "/v1/providers:bulk", {"providers": []}),
        ("GET", "/v1/groups", None),
        ("GET", "/v1/watch", None),
    ):
        answer = group.ask(method, path, sent)
        assert (answer.status, answer.body["code"]) == (403, "forbidden"), path
    denied = native.ask("GET", "/resource_providers", token=group.secret, **PLACEMENT)
    assert denied.status in (401, 403)


def test_pins_and_ghosts(group: Group, native: Native) -> None:
    """An operator pins a node to somebody else; a gone node that is allocated is a ghost."""
    group.join()
    one = node()
    group.report(one)
    assert group.ask("GET", f"{group.path}/nodes").body == {
        "nodes": [{"uuid": one["uuid"], "ghost": False}],
        "next": None,
    }
    consumer = str(uuid4())
    allocation = {
        "allocations": {one["uuid"]: {"resources": {"CUSTOM_BAREMETAL_GOLD": 1}}},
        "project_id": "p",
        "user_id": "u",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }
    assert native.ask("PUT", f"/allocations/{consumer}", allocation, **PLACEMENT).status == 204
    gone = group.report({"uuid": one["uuid"], "seen": "absent"})
    assert (gone.body["ghosts"], gone.body["updated"]) == (1, 1), gone
    assert gone.body["results"][0]["ghost"] is True
    assert group.ask("GET", f"{group.path}/ghosts").body == {"ghosts": [one["uuid"]], "next": None}
    listed = group.ask("GET", f"{group.path}/nodes").body["nodes"]
    assert listed == [{"uuid": one["uuid"], "ghost": True}]
    in_use = group.report({**one, "inventories": {}})
    assert in_use.body["codes"] == {"inventory_in_use": 1}
    pinned = native.ask(
        "POST", f"{group.path}/pins", {"nodes": [one["uuid"].upper()], "member": "b"}
    )
    assert (pinned.body["pins_generation"], pinned.body["pinned_elsewhere"]) == (1, 1)
    refused = group.report(one)
    assert refused.body["codes"] == {"not_owner": 1}
    assert "belongs to b" in refused.body["results"][0]["message"]
    listed = group.ask("GET", f"{group.path}/pins").body
    assert listed == {"pins": [{"node": one["uuid"], "member": "b"}], "next": None}


def test_observed_members(group: Group) -> None:
    """A list with a time; an empty one because of an error is refused."""
    seen = {"members": ["c2", "c1"], "seen_at": "2026-01-01T00:00:00+01:00"}
    answer = group.ask("PUT", f"{group.path}/observed", seen)
    assert answer.status == 200, answer
    assert (answer.body["observed"], answer.body["seen_at"]) == (
        ["c1", "c2"],
        "2025-12-31T23:00:00Z",
    )
    failed = group.ask("PUT", f"{group.path}/observed", {**seen, "members": [], "error": "no"})
    assert (failed.status, failed.body["code"]) == (422, "observer_failed")


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"[]", 400),
        (b'{"nodes": []}', 400),
        (b'{"group": "g", "member": "a", "token": "1", "nodes": [], "x": 1}', 400),
        (b'{"group": "g", "group": "g", "member": "a", "token": "1", "nodes": []}', 400),
        (b'{"group": "g", "member": "a", "token": "1", "mode": "x", "nodes": []}', 400),
        (b'{"group": "g", "member": "a", "token": "1", "nodes": [], "nodes": [{}]}', 400),
        (b'{"group": "g", "member": "a", "token": "1", "nodes": [{}]}', 400),
        (b'{"group": "g", "member": "a", "token": "1", "nodes": [{"uuid": "x"}]}', 400),
        (
            b'{"group": "g", "member": "a", "token": "1", "nodes": [{"seen": "x", "uuid": "'
            + str(uuid4()).encode()
            + b'"}]}',
            400,
        ),
        (b'{"group": "g", "member": "a", "token": "1", "nodes": []}', 409),
        (
            b'{"group": "g", "member": "a", "token": "1", "nodes": ['
            + b",".join([b"{}"] * (BULK_PROVIDERS_MAX + 1))
            + b"]}",
            400,
        ),
        (
            b'{"group": "g", "member": "a", "token": "1", "nodes": [{"name": "'
            + b"x" * PROVIDER_BYTES_MAX
            + b'"}]}',
            413,
        ),
    ],
)
def test_refused_reports(native: Native, body: bytes, status: int) -> None:
    """Invalid bodies are refused as a whole."""
    assert native.ask("POST", "/v1/reports", body).status == status


def test_the_last_pass_is_shown(group: Group) -> None:
    """What a member says of it stays until it says something else; it is bounded."""
    said = {"age": 5.0, "nodes": 12, "refused": {"not_owner": 2}}
    group.join(last_pass=said)
    group.join()
    (member,) = group.ask("GET", group.path).body["members"]
    assert member["last_pass"]["age"] >= 5.0
    assert {**member["last_pass"], "age": 5.0} == said
    many = {f"c{n}": 1 for n in range(65)}
    for refused in ({"x\n": 1}, {"x": -1}, many):
        assert group.join(last_pass={**said, "refused": refused}).body["code"] == "invalid"
    group.instance = str(uuid4())
    group.join()
    assert group.ask("GET", group.path).body["members"][0]["last_pass"] is None


def test_a_node_that_is_named_twice(group: Group) -> None:
    """The whole report is refused."""
    group.join()
    one = node()
    assert group.report(one, one).body["code"] == "invalid"


def test_a_custom_trait_of_others_stays(group: Group, native: Native) -> None:
    """A report need not name it: its provider is still updated, and so are others beside it."""
    group.join()
    one, other = node(), node()
    group.report(one)
    traits = f"/resource_providers/{one['uuid']}/traits"
    name = f"CUSTOM_{uuid4().hex.upper()}"
    assert native.ask("PUT", f"/traits/{name}", **PLACEMENT).status == 201
    before = native.ask("GET", traits, **PLACEMENT).body
    body = {**before, "traits": [name]}
    assert native.ask("PUT", traits, body, **PLACEMENT).status == 200
    made = group.report({**one, "name": f"other-{one['uuid']}"}, other)
    assert [each["outcome"] for each in made.body["results"]] == ["updated", "created"]
    assert {*traits_of(native, one["uuid"])} == {"CUSTOM_RACK_7", name}


def test_a_report_with_too_many_names(group: Group, native: Native) -> None:
    """It is refused as a whole, with the number that may be sent; nothing is created."""
    group.join()
    large = node(traits=[f"CUSTOM_T{n}" for n in range(REPORTED_NAMES_MAX)])
    one = node()
    refused = group.report(one, large)
    assert (refused.status, refused.body["code"]) == (400, "limit_exceeded")
    assert f"at most {REPORTED_NAMES_MAX} may be reported of one" in refused.body["detail"]
    assert native.ask("GET", f"/resource_providers/{one['uuid']}", **PLACEMENT).status == 404


def test_the_changes_are_shown(group: Group, native: Native) -> None:
    """Members, pins and what reports have set are changes, without tokens."""
    begin = native.ask("GET", "/v1/watch?wait=0").body["next"]
    group.join()
    group.join()
    one = node()
    group.report(one)
    native.ask("POST", f"{group.path}/pins", {"nodes": [one["uuid"]], "member": "b"})
    changes = native.ask("GET", f"/v1/watch?after={begin}&wait=0").body["changes"]
    found = {(one["kind"], one["key"]): one["value"] for one in changes}
    assert found["pin", f"{group.name}/{one['uuid']}"] == "b"
    assert found["tags", one["uuid"]]["reported"] == [
        {"group": group.name, "traits": ["CUSTOM_RACK_7"], "ghost": False}
    ]
    member = found["reporter", f"{group.name}/a"]
    assert (member["ttl"], member["instance"]) == (30.0, group.instance)
    assert "token" not in member
    assert sum(one["kind"] == "reporter" for one in changes) == 1
    assert found["reporter_group", group.name]["pins_generation"] == 1


def test_a_group_is_deleted(group: Group, native: Native) -> None:
    """Once nobody is live in it, and once only; followers of changes and later members see it."""
    group.join()
    group.report(made := node())
    pins = {"nodes": [made["uuid"]], "member": "b"}
    assert native.ask("POST", f"{group.path}/pins", pins).status == 200
    refused = native.ask("DELETE", group.path)
    assert (refused.status, refused.body["code"]) == (409, "group_in_use")
    assert group.ask("DELETE", group.path).status == 403
    group.ask("DELETE", f"{group.path}/members/a?instance={group.instance}")
    after = native.ask("GET", "/v1/watch?wait=0").body["next"]
    assert native.ask("DELETE", group.path).status == 204
    for method, path in (("DELETE", ""), ("GET", ""), ("GET", "/nodes"), ("GET", "/pins")):
        lost = native.ask(method, f"{group.path}{path}")
        assert (lost.status, lost.body["code"]) == (404, "group_not_found")
    (change,) = native.ask("GET", f"/v1/watch?after={after}&kinds=reporter_group").body["changes"]
    assert (change["key"], change["value"]) == (group.name, None)
    tags = native.ask("GET", f"/v1/watch?after={after}&kinds=tags&wait=30").body["changes"][0]
    assert (tags["key"], tags["value"]["reported"]) == (made["uuid"], [])
    assert traits_of(native, made["uuid"]) == ["CUSTOM_RACK_7"]
    group.instance = str(uuid4())
    while (joined := group.join()).status != 200:
        assert joined.body["code"] == "group_being_deleted"


def test_nodes_that_are_decoded_together(group: Group) -> None:
    """A report's nodes are answered in order, and an invalid one is named as if it were alone."""
    group.join()
    many = [node(traits=[f"CUSTOM_{n}_{'X' * (n * 37 % 250)}"]) for n in range(100)]
    answers = group.report(*many).body["results"]
    assert [each["uuid"] for each in answers] == [each["uuid"] for each in many]
    for n in (0, 40, 99):
        wrong = [*many]
        wrong[n] = {**many[n], "name": 7}
        refused = group.report(*wrong)
        assert (refused.status, refused.body["detail"]) == (
            400,
            "The body is invalid: Expected `str | null`, got `int` - at `$.name`",
        )
