"""Lists in pages, and the audit rows of administration."""

from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.faces.v1.leasing import ask, make_pool
from tests.faces.v1.native import Native


def pages(native: Native, path: str, member: str, limit: int) -> list[Any]:
    """Return all entries of a list, page by page."""
    found: list[Any] = []
    query = f"?limit={limit}"
    while True:
        answer = native.ask("GET", path + query)
        assert answer.status == 200, answer
        assert len(answer.body[member]) <= limit
        found += answer.body[member]
        if answer.body["next"] is None:
            return found
        query = f"?limit={limit}&cursor={answer.body['next']}"


@pytest.mark.parametrize(
    ("path", "member"),
    [("/v1/tokens", "tokens"), ("/v1/audit", "entries"), ("/v1/providers", "providers")],
)
def test_pages_of_any_size_are_complete(native: Native, path: str, member: str) -> None:
    """Pages of any size together have each entry once, in the same order."""
    for n in range(5):
        native.token("reader")
        native.provider(f"{member}-{n}")
    whole = pages(native, path, member, 1000)
    assert len(whole) >= 5
    for limit in (1, 2, len(whole)):
        assert pages(native, path, member, limit) == whole


@pytest.mark.parametrize("path", ["/v1/tokens", "/v1/audit", "/v1/providers"])
def test_invalid_pages_are_refused(native: Native, path: str) -> None:
    """A page has 1 to 1000 entries."""
    for limit in (0, -1, 1001):
        assert native.ask("GET", f"{path}?limit={limit}").body["code"] == "invalid"
    assert native.ask("GET", f"{path}?limit=x").body["code"] == "refused"
    if path != "/v1/providers":
        assert native.ask("GET", f"{path}?cursor=x").body["code"] == "invalid"


def test_providers_are_listed_in_full(native: Native) -> None:
    """A provider is listed with inventories, their usage, traits and aggregates."""
    uuid = native.provider("whole")
    latest = {"OpenStack_API_Version": "placement latest"}
    wanted: dict[str, Any] = {
        "resource_provider_generation": 0,
        "inventories": {"VCPU": {"total": 8, "allocation_ratio": 2.0}},
    }
    native.ask("PUT", f"/resource_providers/{uuid}/inventories", wanted, **latest)
    wanted = {"resource_provider_generation": 1, "traits": ["HW_CPU_X86_AVX2"]}
    native.ask("PUT", f"/resource_providers/{uuid}/traits", wanted, **latest)
    (shown,) = (
        one for one in pages(native, "/v1/providers", "providers", 100) if one["uuid"] == uuid
    )
    assert (shown["name"], shown["root"], shown["parent"]) == ("whole", uuid, None)
    assert (shown["generation"], shown["traits"]) == (2, ["HW_CPU_X86_AVX2"])
    assert shown["inventories"]["VCPU"]["allocation_ratio"] == 2.0
    assert shown["inventories"]["VCPU"]["used"] == 0
    as_of = native.ask("GET", "/v1/providers").body["as_of"]
    assert native.ask("GET", f"/v1/watch?wait=0&after={as_of}").body["changes"] == []


def test_every_administrative_operation_is_audited(native: Native, tmp_path: Path) -> None:
    """A row has the actor, its token, the action, its target, and the state before and after."""
    wanted = {"name": "eve", "role": "admin", "project_id": None}
    eve = native.ask("POST", "/v1/tokens", wanted).body
    made = native.ask("POST", "/v1/tokens", {**wanted, "name": "x"}, token=eve["token"]).body
    native.ask("DELETE", f"/v1/tokens/{made['id']}", token=eve["token"])
    assert native.ask("DELETE", f"/v1/tokens/{made['id']}", token=eve["token"]).status == 404
    path = str(tmp_path / "copy")
    native.ask("POST", "/v1/database/backup", {"copied_to": path}, token=eve["token"])
    refused = native.ask("POST", "/v1/tokens", {**wanted, "role": "king"}, token=eve["token"])
    assert refused.status == 400
    entries = native.ask("GET", "/v1/audit?limit=4").body["entries"]
    assert {(one["who"], one["token_id"], one["role"]) for one in entries[:3]} == {
        ("eve", eve["id"], "admin")
    }
    answer = [(one["action"], one["target"], one["before"], one["after"]) for one in entries]
    described = {**wanted, "name": "x"}
    assert answer == [
        ("database.backup", path, None, None),
        ("token.revoke", made["id"], described, None),
        ("token.create", made["id"], None, described),
        ("token.create", eve["id"], None, wanted),
    ]
    assert made["token"] not in str(native.ask("GET", "/v1/audit?limit=1000").body)
    asked = f"/v1/audit?target={made['id']}&limit=1"
    first = native.ask("GET", asked).body
    second = native.ask("GET", f"{asked}&cursor={first['next']}").body
    assert (first["entries"], second["entries"]) == ([entries[1]], [entries[2]])
    assert second["next"] is None


@pytest.mark.parametrize(("path", "member"), [("/v1/leases", "leases"), ("/v1/agents", "agents")])
def test_ids_that_begin_so(native: Native, path: str, member: str) -> None:
    """`id_prefix` finds an id by its first characters, in any case; other ids are not listed."""
    pool = make_pool(native, limit=9)
    if member == "leases":
        ids = [ask(native, pool).body["id"] for _ in range(3)]
    else:
        ids = [str(uuid4()) for _ in range(3)]
        for one in ids:
            assert native.ask("PUT", f"/v1/agents/{one}", {"group": "g"}).status == 200
    for one in ids:
        for prefix in (one, one.upper(), one[:-1]):
            found = native.ask("GET", f"{path}?id_prefix={prefix}").body
            assert [each["id"] for each in found[member]] == [one]
            assert found["next"] is None
    begun = native.ask("GET", f"{path}?id_prefix={ids[0][:8]}").body[member]
    assert ids[0] in [each["id"] for each in begun]
    assert {each["id"][:8] for each in begun} == {ids[0][:8]}
    assert native.ask("GET", f"{path}?id_prefix={'0' * 8}").body[member] == []


@pytest.mark.parametrize("path", ["/v1/leases", "/v1/agents"])
@pytest.mark.parametrize(
    "prefix", ["", "0123456", "0123456g", "01234567-", "01234567-1234_", "%25" * 9, "0" * 40]
)
def test_what_no_id_begins_with_is_refused(native: Native, path: str, prefix: str) -> None:
    """Fewer than eight characters, or others than an id has there; a dash belongs to an id."""
    answer = native.ask("GET", f"{path}?id_prefix={prefix}")
    if prefix == "01234567-":
        assert answer.status == 200, answer
        return
    assert (answer.status, answer.body["code"]) == (400, "invalid")
    assert "first 8 characters" in answer.body["detail"]


def test_prefixes_of_ids_and_rights(native: Native) -> None:
    """Others see no token, as in any list; keys cannot be asked for at the same time."""
    pool = make_pool(native, limit=9)
    mine, other = native.token("user", "ids-1"), native.token("user", "ids-2")
    lease = ask(native, pool, token=mine).body["id"]
    query = f"/v1/leases?id_prefix={lease[:13]}"
    (own,) = native.ask("GET", query, token=mine).body["leases"]
    (seen,) = native.ask("GET", query, token=other).body["leases"]
    assert (own["id"], seen["id"]) == (lease, lease)
    assert own["token"] is not None
    assert seen["token"] is None
    both = native.ask("GET", f"{query}&key_prefix=x&owner=admin").body
    assert both["code"] == "invalid"
    assert "only one of" in both["detail"]
