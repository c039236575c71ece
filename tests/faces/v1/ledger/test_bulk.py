"""Bulk changes of providers over HTTP: input, responses and refusals."""

import json
import uuid
from typing import Any

import pytest

from moorage.core.limits import PROVIDER_BYTES_MAX
from tests.faces.v1.native import Native, Response

LATEST = {"OpenStack_API_Version": "placement latest"}
NOBODY = str(uuid.UUID(int=99))


def bulk(native: Native, *providers: dict[str, Any], **more: Any) -> Response:
    """Send a bulk request."""
    return native.ask("POST", "/v1/providers:bulk", {"providers": providers, **more})


def outcomes(answer: Response) -> list[str]:
    """Return the outcomes, or codes of refusals."""
    assert answer.status == 200, answer
    results = answer.body["results"]
    for kind in ("created", "updated", "unchanged", "refused"):
        assert answer.body[kind] == sum(each["outcome"] == kind for each in results)
    return [each["code"] or each["outcome"] for each in results]


def test_a_tree_is_created_and_changed(native: Native) -> None:
    """A tree is created, found unchanged, and changed in one property, as Placement shows."""
    host, card = str(uuid.uuid4()), str(uuid.uuid4())
    described: list[dict[str, Any]] = [
        {
            "uuid": card,
            "name": f"card-{card}",
            "parent": host.upper(),
            "inventories": {"CUSTOM_SLOT": {"total": 2, "max_unit": 1, "allocation_ratio": 1.5}},
        },
        {
            "uuid": host.upper(),
            "name": f"host-{host}",
            "parent": None,
            "inventories": {},
            "traits": ["HW_CPU_X86_AVX2", "CUSTOM_FAST"],
            "aggregates": [NOBODY.upper()],
        },
    ]
    refused = bulk(native, *described)
    assert outcomes(refused) == ["tree_refused", "trait_unknown"]
    assert "CUSTOM_FAST" in refused.body["results"][1]["message"]
    made = bulk(native, *described, create_vocabulary=True)
    assert outcomes(made) == ["created", "created"]
    assert [each["uuid"] for each in made.body["results"]] == [card, host]
    generations = [each["generation"] for each in made.body["results"]]
    same = bulk(native, *described)
    assert outcomes(same) == ["unchanged", "unchanged"]
    assert [each["generation"] for each in same.body["results"]] == generations
    assert outcomes(bulk(native, {"uuid": host})) == ["unchanged"]
    assert outcomes(bulk(native, {"uuid": host, "parent": ""})) == ["unchanged"]
    assert outcomes(bulk(native, {"uuid": host, "traits": []})) == ["updated"]
    shown = native.ask("GET", f"/resource_providers/{card}", **LATEST).body
    assert shown["parent_provider_uuid"] == shown["root_provider_uuid"] == host
    slots = native.ask("GET", f"/resource_providers/{card}/inventories", **LATEST).body
    assert slots["inventories"]["CUSTOM_SLOT"]["allocation_ratio"] == 1.5
    groups = native.ask("GET", f"/resource_providers/{host}/aggregates", **LATEST).body
    assert groups["aggregates"] == [NOBODY]
    assert native.ask("GET", f"/resource_providers/{host}/traits", **LATEST).body["traits"] == []
    assert outcomes(bulk(native, {"uuid": card, "parent": None})) == ["updated"]


def test_many_at_once(native: Native) -> None:
    """Results are in the order of the request; a repeated request writes nothing."""
    uuids = [str(uuid.uuid4()) for _ in range(450)]
    described = [
        {"uuid": each, "name": f"n-{each}", "inventories": {"VCPU": {"total": 8}}} for each in uuids
    ]
    assert outcomes(bulk(native, *described)) == ["created"] * 450
    before = native.ask("GET", "/v1/watch?wait=0").body["next"]
    again = bulk(native, *described)
    assert outcomes(again) == ["unchanged"] * 450
    assert [each["uuid"] for each in again.body["results"]] == uuids
    assert native.ask("GET", f"/v1/watch?wait=0&after={before}").body["changes"] == []


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        ({}, "invalid"),
        ({"name": ""}, "invalid"),
        ({"name": "x" * 201}, "invalid"),
        ({"name": "x", "parent": NOBODY}, "parent_unknown"),
        ({"name": "x", "inventories": {"VCPU": {"total": 0}}}, "invalid"),
        ({"name": "x", "inventories": {"VCPU": {"total": 2**31}}}, "invalid"),
        ({"name": "x", "inventories": {"NOTHING": {"total": 1}}}, "class_unknown"),
        ({"name": "x", "traits": ["NOTHING"]}, "trait_unknown"),
    ],
)
def test_invalid_providers_are_refused_separately(
    native: Native, wanted: dict[str, Any], code: str
) -> None:
    """Only the invalid provider is refused, with its reason; the other is created."""
    good, bad = ({"uuid": str(uuid.uuid4())} for _ in range(2))
    good["name"] = f"good-{good['uuid']}"
    assert outcomes(bulk(native, {**bad, **wanted}, good)) == [code, "created"]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "refused"),
        (b"[]", "refused"),
        (b"{}", "refused"),
        (b'{"providers": {}}', "refused"),
        (b'{"providers": [5]}', "refused"),
        (b'{"providers": [{}]}', "refused"),
        (b'{"providers": [{"uuid": "x"}]}', "invalid"),
        (b'{"providers": [{"uuid": 5}]}', "refused"),
        (b'{"providers": [], "more": 1}', "refused"),
        (b'{"providers": [], "create_vocabulary": 1}', "refused"),
        (b'{"providers": [], "providers": []}', "refused"),
        (b'{"providers": [], "provid\\u0065rs": []}', "refused"),
        (b'{"providers": [{"uuid": "' + NOBODY.encode() + b'", "more": 1}]}', "refused"),
        (b'{"providers": [{"uuid": "' + NOBODY.encode() + b'", "name": "\xff"}]}', "refused"),
        (b'{"providers": [{"uuid": "' + NOBODY.encode() + b'", "name": "\\u0000"}]}', "refused"),
        (b'{"providers": [{"uuid": "a", "uuid": "' + NOBODY.encode() + b'"}]}', "refused"),
        (b'{"providers": ' + b"[" * 100_000, "refused"),
        (
            json.dumps({"providers": [{"uuid": NOBODY}, {"uuid": NOBODY}]}).encode(),
            "invalid",
        ),
        (
            json.dumps({"providers": [{"uuid": NOBODY, "aggregates": ["x"]}]}).encode(),
            "invalid",
        ),
        (b'{"providers": [' + b"{}," * 5_000 + b"{}]}", "limit_exceeded"),
    ],
)
def test_invalid_bodies(native: Native, body: bytes, code: str) -> None:
    """An invalid body is refused as a whole, with the reason."""
    answer = native.ask("POST", "/v1/providers:bulk", body)
    assert (answer.status, answer.body["code"]) == (400, code), answer
    assert native.ask("GET", f"/resource_providers/{NOBODY}", **LATEST).status == 404


def test_the_limit_of_bulk_bodies(native: Native) -> None:
    """Bulk bodies may exceed the ordinary limit; the error beyond their own names its setting."""
    wide = b'{"providers": []' + b" " * (2 << 20) + b"}"
    assert outcomes(native.ask("POST", "/v1/providers:bulk", wide)) == []
    answer = native.ask("POST", "/v1/providers:bulk", b" " * ((32 << 20) + 1))
    assert answer.status == 413 and "bulk_bytes_max" in answer.body["detail"]


def test_the_limit_of_one_provider(native: Native) -> None:
    """One byte above a provider's own limit refuses the whole request."""
    first, second = str(uuid.uuid4()), str(uuid.uuid4())

    def padded(each: str, size: int) -> bytes:
        start = json.dumps({"uuid": each, "name": each}).encode().removesuffix(b"}")
        return start + b" " * (size - len(start) - 1) + b"}"

    def body(size: int) -> bytes:
        return b'{"providers": [' + padded(first, 200) + b"," + padded(second, size) + b"]}"

    answer = native.ask("POST", "/v1/providers:bulk", body(PROVIDER_BYTES_MAX + 1))
    assert answer.status == 413 and str(PROVIDER_BYTES_MAX) in answer.body["detail"]
    assert native.ask("GET", f"/resource_providers/{first}", **LATEST).status == 404
    answer = native.ask("POST", "/v1/providers:bulk", body(PROVIDER_BYTES_MAX))
    assert outcomes(answer) == ["created", "created"]
