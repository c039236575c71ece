"""Lease requests out of bounds or for unknown leases: the error names what is wrong."""

from typing import Any
from uuid import uuid4

import pytest

from tests.faces.v1.leasing import ask, lease_action, refused
from tests.faces.v1.native import Native


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ({"key": ""}, ["key", "255"]),
        ({"key": "k" * 256}, ["key", "255"]),
        ({"needs": []}, ["needs", "16"]),
        ({"needs": [{"pool": str(n)} for n in range(17)]}, ["needs", "16"]),
        ({"needs": [{"pool": "POOL", "units": 0}]}, ["units", "1"]),
        ({"needs": [{"pool": "POOL"}, {"pool": "POOL"}]}, ["once"]),
        ({"needs": [{"pool": "POOL", "amount": 1}]}, ["amount"]),
        ({"ttl": 0.5}, ["ttl", "1"]),
        ({"ttl": 86_401}, ["ttl", "86400"]),
        ({"ttl": 1e300}, ["ttl", "31622400"]),
        ({"hold": 0}, ["hold"]),
        ({"hold": -5}, ["hold"]),
        ({"patience": 0}, ["patience", "3600"]),
        ({"patience": 3_601}, ["patience", "3600"]),
        ({"priority": 1_000_001}, ["priority", "1000000"]),
        ({"priority": 1.5}, ["priority"]),
        ({"labels": {"": "x"}}, ["63"]),
        ({"labels": {"a": "x" * 256}}, ["255"]),
        ({"labels": {"a": 1}}, ["labels"]),
        ({"labels": {"a": "x\U000e0041"}}, ["Label 'a'", "U+E0041"]),
        ({"labels": {"a\u200b": "x"}}, ["name of a label", "U+200B"]),
        ({"labels": {"a": "x" + "\u0301" * 5}}, ["Label 'a'", "4 combining marks"]),
        ({"labels": {"a": "\u202ex"}}, ["Label 'a'", "U+202E"]),
        ({"key": "k\U000e007f"}, ["key", "U+E007F"]),
        ({"key": "k" + "\u0336" * 5}, ["key", "4 combining marks"]),
        ({"wish": 1}, ["wish"]),
    ],
)
def test_errors_name_the_bound(
    native: Native, pool: str, wanted: dict[str, Any], words: list[str]
) -> None:
    """The error names the value that is out of bounds."""
    text = {"needs": [{"pool": pool}], "key": "bounds"} | wanted
    for need in text["needs"]:
        need["pool"] = need["pool"].replace("POOL", pool)
    answer = native.ask("POST", "/v1/leases", text)
    assert answer.status == 400, answer
    assert [word for word in words if word not in answer.body["detail"]] == []


@pytest.mark.parametrize("text", ["\U000e0041", "a\u0301\u0301\u0301\u0301\u0301", "\ufeff"])
def test_pools_and_tokens_have_plain_texts_too(native: Native, pool: str, text: str) -> None:
    """Labels, the reason of a pause, and names of tokens; four marks are accepted everywhere."""
    fine = "a" + "\u0301" * 4 + "👩\u200d🚒"
    for given, status in ((text, 400), (fine, 200)):
        labelled = native.ask("PUT", f"/v1/pools/{pool}", {"limit": 1, "labels": {"a": given}})
        paused = native.ask("POST", f"/v1/pools/{pool}:pause", {"reason": given})
        assert [labelled.status, paused.status] == [status, status], given
    made = native.ask("POST", "/v1/tokens", {"name": text, "role": "reader"})
    assert made.status == 400


def test_waits_are_bounded(native: Native, pool: str) -> None:
    """`wait` must be a number of at most 60."""
    for wait in ("61", "-1", "nan", "soon"):
        answer = ask(native, pool, query=f"?wait={wait}")
        assert answer.status == 400, wait
    assert "60" in ask(native, pool, query="?wait=61").body["detail"]


def test_unknown_leases(native: Native) -> None:
    """404 for an unknown lease, and for a text that is no id."""
    for lease in (str(uuid4()), "nothing"):
        for method, path, body in (
            ("GET", "", None),
            ("DELETE", "", None),
            ("PATCH", "", {"hold": 1}),
            ("POST", "/renew", {}),
            ("POST", "/retry", {"key": "k"}),
            ("POST", "/revoke", {}),
            ("POST", "/outcome", {"result": "ok"}),
        ):
            answer = native.ask(method, f"/v1/leases/{lease}{path}", body)
            assert refused(answer) == (404, "lease_not_found"), (method, path)


def test_reasons_are_plain_texts(native: Native, pool: str) -> None:
    """Whatever an operator does, a reason with a character that terminals obey is refused."""
    lease, machine = ask(native, pool).body["id"], str(uuid4())
    owner = native.ask("GET", f"/v1/leases/{lease}").body["owner"]
    question = {"groups": [{"suffix": "", "resources": {"VCPU": 1}}]}
    claim = {**question, "project_id": "p", "user_id": "u"}
    action = {"action": "lease.revoke", "target": lease}
    for path, body in (
        (f"/v1/leases/{lease}/revoke", {}),
        ("/v1/leases/revoke", {"owner": owner}),
        (f"/v1/pools/{pool}:pause", {}),
        ("/v1/actions/preview", action),
        ("/v1/claims", claim),
        ("/v1/reshapes", {"plan": {"drain": {machine: ""}}}),
    ):
        answer = native.ask("POST", path, {**body, "reason": "a\x1b[2J"})
        assert refused(answer) == (400, "invalid"), path
        assert answer.body["detail"] == "reason must not contain U+001B.", path
    assert native.ask("GET", f"/v1/leases/{lease}").body["state"] == "granted"


def test_long_texts_are_refused(native: Native, pool: str) -> None:
    """A reason or detail has a limit, too."""
    lease = ask(native, pool).body["id"]
    long = "x" * 1_001
    for answer in (
        lease_action(native, lease, "revoke", reason=long),
        lease_action(native, lease, "outcome", result="ok", detail=long),
    ):
        assert answer.status == 400
        assert "1000" in answer.body["detail"]
    answer = lease_action(native, lease, "outcome", result="fine")
    assert answer.status == 400
