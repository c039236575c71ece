"""Lists in pages, and the audit rows of administration."""

from pathlib import Path
from typing import Any

import pytest

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
