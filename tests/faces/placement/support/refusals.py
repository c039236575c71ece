"""Requests that Placement refuses, as data: `refusals.json` has its response to each.

Some of the generated requests are valid; they are sent like the others. Requests to which Moorage
responds differently on purpose are not included: docs/reference/placement.md lists those. `python
-m tests.faces.placement.support.record` records the responses again.
"""

import json
import random
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from tests.faces.placement.support.mutations import mutations

RECORDED = Path(__file__).with_name("refusals.json")
SHOWN_LENGTH = 120
"""How many characters of a detail are kept; longer ones are replaced by this and a digest."""
MUTATIONS_EACH = 8
"""How many faulty bodies there are for each route and microversion."""
ROLES = "admin,service"


class Request(NamedTuple):
    """One request; a body that is not bytes is sent as JSON."""

    method: str
    target: str
    body: Any = None
    version: int = 39


def recorded_form(status: int, body: bytes) -> list[Any]:
    """Return what is recorded of a response: its status; if refused, also code and detail."""
    if status < 400:
        return [status, None, ""]
    error = json.loads(body)["errors"][0]
    assert error["status"] == status
    detail: str = error["detail"]
    if len(detail) > SHOWN_LENGTH * 2:
        digest = sha256(detail.encode()).hexdigest()[:16]
        opening = detail.partition("\n\n")[2][:SHOWN_LENGTH]
        detail = f"{opening}... ({len(detail)}, {digest})"
    return [status, error.get("code"), detail]


P, Q, R, X = (f"4e6e6d4c-1111-4000-8000-00000000000{number}" for number in (1, 2, 3, 9))
A = "4e6e6d4c-3333-4000-8000-000000000001"
HOLDER, NEW = (f"4e6e6d4c-2222-4000-8000-00000000000{number}" for number in (1, 2))
OF_P, OF_Q = f"/resource_providers/{P}", f"/resource_providers/{Q}"
VERSIONS = (0, 3, 6, 8, 12, 13, 14, 19, 28, 30, 34, 38)
"""Microversions that change bodies, and some between them."""


def generation(seen: int) -> dict[str, Any]:
    """Return the member with a provider's generation."""
    return {"resource_provider_generation": seen}


def stock(seen: int, **inventories: dict[str, Any]) -> dict[str, Any]:
    """Return a body that replaces inventories."""
    return {**generation(seen), "inventories": inventories}


def claim(provider: str, seen: int | None = None, **amounts: int) -> dict[str, Any]:
    """Return a body with the allocations of one consumer."""
    return {
        "allocations": {provider: {"resources": amounts}},
        "project_id": "p",
        "user_id": "u",
        "consumer_generation": seen,
        "consumer_type": "T",
    }


SETUP: tuple[Request, ...] = (
    Request("POST", "/resource_providers", {"name": "p", "uuid": P}),
    Request("POST", "/resource_providers", {"name": "q", "uuid": Q, "parent_provider_uuid": P}),
    Request("POST", "/resource_providers", {"name": "r", "uuid": R}),
    Request("POST", "/resource_classes", {"name": "CUSTOM_A"}),
    Request("POST", "/resource_classes", {"name": "CUSTOM_B"}),
    Request("PUT", "/traits/CUSTOM_T"),
    Request(
        "PUT",
        f"{OF_P}/inventories",
        stock(0, VCPU={"total": 10}, DISK_GB={"total": 9, "step_size": 2}, CUSTOM_A={"total": 3}),
    ),
    Request("PUT", f"/resource_providers/{R}/inventories", stock(0, VCPU={"total": 10})),
    Request("PUT", f"{OF_P}/traits", {**generation(1), "traits": ["CUSTOM_T"]}),
    Request("PUT", f"/allocations/{HOLDER}", claim(P, VCPU=1, DISK_GB=2)),
)
"""The state before the other requests: P then has generation 3, R has 1."""


def all_requests() -> list[Request]:
    """Return all requests, in their order."""
    return [
        *(*_addresses(), *_providers(), *_inventories(), *_words()),
        *(*_claims(), *_reshapes()),
        *(*_lists(), *_candidates(), *_malformed(), *_mutated()),
    ]


def _addresses() -> Iterator[Request]:
    for uuid in (X, "x"):
        one = f"/resource_providers/{uuid}"
        for below in ("", "/inventories", "/inventories/VCPU", "/traits"):
            yield Request("GET", one + below)
            yield Request("DELETE", one + below)
        for below in ("/usages", "/allocations", "/aggregates"):
            yield Request("GET", one + below)
        yield Request("PUT", one, {"name": "z"})
        yield Request("PUT", f"{one}/inventories", stock(0))
        yield Request("POST", f"{one}/inventories", {"resource_class": "VCPU", "total": 1})
        yield Request("PUT", f"{one}/inventories/VCPU", {**generation(0), "total": 1})
        yield Request("PUT", f"{one}/aggregates", {**generation(0), "aggregates": []})
        yield Request("PUT", f"{one}/traits", {**generation(0), "traits": []})
    for version in (0, 4, 22, 39):
        yield Request("GET", "/nowhere", version=version)
        yield Request("PATCH", "/resource_providers", version=version)
        yield Request("POST", "/", version=version)
    yield Request("DELETE", f"{OF_P}/inventories", version=4)
    yield Request("GET", "/resource_classes", version=1)


def _providers() -> Iterator[Request]:
    for body in (
        {"name": "p"},
        {"name": "n", "uuid": P},
        {"name": "p", "uuid": P},
        {"name": "n", "uuid": X, "parent_provider_uuid": A},
        {"name": "{n}", "uuid": X, "parent_provider_uuid": X},
        {"name": "", "uuid": X},
        {"name": "", "uuid": X, "parent_provider_uuid": X},
    ):
        yield Request("POST", "/resource_providers", body)
    yield Request("PUT", OF_P, {"name": "q"})
    for parent in (X, Q, P):
        yield Request("PUT", OF_P, {"name": "p", "parent_provider_uuid": parent})
    yield Request("PUT", OF_Q, {"name": "p", "parent_provider_uuid": X})
    for moved in (R, None):
        yield Request("PUT", OF_Q, {"name": "q", "parent_provider_uuid": moved}, 30)
    yield Request("DELETE", OF_P)


def _inventories() -> Iterator[Request]:
    path = f"{OF_P}/inventories"
    much = {"total": 1, "reserved": 2}
    for body in (
        stock(0),
        stock(3),
        stock(3, VCPU={"total": 1}),
        stock(3, CUSTOM_NO={"total": 1}),
        stock(3, abc={"total": 1}),
        stock(3, CUSTOM_NO={"total": 1}, VCPU=much),
    ):
        yield Request("PUT", path, body)
    for version in (25, 39):
        yield Request("PUT", path, stock(3, VCPU=much), version)
        yield Request("PUT", f"{path}/VCPU", {**generation(3), **much}, version)
        yield Request("POST", path, {"resource_class": "CUSTOM_B", **much}, version)
    yield Request("PUT", f"{path}/VCPU", {**generation(0), "total": 1})
    for name in ("CUSTOM_B", "CUSTOM_NO", "abc"):
        yield Request("PUT", f"{path}/{name}", {**generation(3), "total": 1})
        yield Request("DELETE", f"{path}/{name}")
        yield Request("GET", f"{path}/{name}")
    yield Request("PUT", f"{path}/CUSTOM_NO", {**generation(3), **much})
    yield Request("POST", path, {"resource_class": "CUSTOM_NO", "total": 1})
    yield Request("POST", path, {"resource_class": "CUSTOM_NO", **much})
    yield Request("DELETE", f"{path}/VCPU")
    yield Request("DELETE", path)


def _words() -> Iterator[Request]:
    yield Request("PUT", f"{OF_P}/aggregates", {**generation(0), "aggregates": [A]})
    yield Request("PUT", f"{OF_P}/traits", {**generation(0), "traits": []})
    for traits in (["CUSTOM_X"], ["CUSTOM_X", "CUSTOM_T"]):
        yield Request("PUT", f"{OF_P}/traits", {**generation(3), "traits": traits})
    yield Request("GET", "/traits/CUSTOM_X")
    for name in ("abc", "CUSTOM_" + "A" * 260):
        yield Request("PUT", f"/traits/{name}")
        yield Request("PUT", f"/resource_classes/{name}")
    for name in ("CUSTOM_X", "CUSTOM_T", "HW_CPU_X86_VMX"):
        yield Request("DELETE", f"/traits/{name}")
    for query in ("name=x", "associated=x", "x=1"):
        yield Request("GET", f"/traits?{query}")
    yield Request("GET", "/resource_classes/CUSTOM_X")
    yield Request("POST", "/resource_classes", {"name": "CUSTOM_A"})
    for name in ("VCPU", "CUSTOM_A", "CUSTOM_X"):
        yield Request("DELETE", f"/resource_classes/{name}")
        yield Request("PUT", f"/resource_classes/{name}", {"name": "CUSTOM_B"}, 5)


def _claims() -> Iterator[Request]:
    for body in (
        claim(P, VCPU=100),
        claim(P, DISK_GB=3),
        claim(P, PCPU=1),
        claim(X, VCPU=1),
        claim(P, CUSTOM_NO=1),
        claim(P, 5, VCPU=1),
    ):
        yield Request("PUT", f"/allocations/{NEW}", body)
        yield Request("POST", "/allocations", {NEW: body})
    for seen in (None, 9):
        yield Request("PUT", f"/allocations/{HOLDER}", claim(P, seen, VCPU=1))
    yield Request("PUT", "/allocations/x", claim(P, VCPU=1))
    for consumer in (NEW, "x"):
        yield Request("DELETE", f"/allocations/{consumer}")


def _reshapes() -> Iterator[Request]:
    small = {R: stock(1, VCPU={"total": 1})}
    for inventories, body in (
        ({P: stock(0)}, None),
        ({X: stock(0)}, None),
        ({P: stock(3)}, None),
        ({P: stock(3, CUSTOM_NO={"total": 1})}, None),
        ({P: stock(3, DISK_GB={"total": 3})}, None),
        (small, claim(R, VCPU=100)),
        (small, claim(X, VCPU=1)),
        (small, claim(R, CUSTOM_NO=1)),
        (small, claim(R, PCPU=1)),
        (small, claim(R, 7, VCPU=1)),
    ):
        allocations = {} if body is None else {NEW: body}
        yield Request("POST", "/reshaper", {"inventories": inventories, "allocations": allocations})


def _lists() -> Iterator[Request]:
    for query in (
        *("resources=", "resources=VCPU", "resources=VCPU:x", "resources=VCPU:0"),
        *("resources=VCPU:1:2", "resources=CUSTOM_NO:1", "required=CUSTOM_NO,CUSTOM_X"),
        *("required=!CUSTOM_NO", "required=CUSTOM_T,!CUSTOM_NO", "required=a,,b", "required=in:"),
        *("required=in:!A", "required=CUSTOM_NO&resources=CUSTOM_NO:1", "member_of=in:x"),
        *("resources=VCPU:x&required=,", "member_of=a,b", "member_of=!x", "member_of=!in:x"),
        *("member_of=x&required=,", f"uuid={P.replace('-', '')}", "foo=1&bar=2", "foo=1&uuid=x"),
    ):
        yield Request("GET", f"/resource_providers?{query}")
    for version in (0, 3, 4, 14, 18, 22, 24, 31, 38):
        for query in (
            *("required=CUSTOM_NO", "required=", "required=in:CUSTOM_NO", "member_of=x"),
            *("resources=x", "in_tree=x", "uuid=x", "name=p&foo=1"),
        ):
            yield Request("GET", f"/resource_providers?{query}", version=version)
    for version in (3, 23, 31):
        for query in (f"member_of=!{A}", f"member_of=x&member_of={A}"):
            yield Request("GET", f"/resource_providers?{query}", version=version)
    for query in ("", "project_id=", "project_id=p&foo=1", "user_id=u", "project_id=p&user_id="):
        yield Request("GET", f"/usages?{query}", version=9)


ALWAYS = (
    *("", "resources=", "resources=VCPU", "resources=CUSTOM_NO:1", "limit=x", "foo=1&bar=2"),
    *("resources=VCPU:1&limit=0", "resources=VCPU:1&required=,", "resources=VCPU:1&foo=1"),
)
GROUPED = (
    *("resources1=VCPU:1&resources2=VCPU:1", "resources1=VCPU:1&group_policy=x", "limit=1"),
    *("resources=VCPU:1&required1=CUSTOM_T", "resources=VCPU:1&resources0=VCPU:x"),
    *(f"resources=VCPU:1&member_of1={A}", f"resources=VCPU:1&in_tree1={P}"),
    *("resources=VCPU:x&required=,", "required=,&resources=VCPU:x", "resources=VCPU:1&member_of=x"),
    *("resources=VCPU:1&required=CUSTOM_T,!CUSTOM_T", "required=CUSTOM_X&resources=CUSTOM_NO:1"),
)
LATEST = (
    *("resources=VCPU:1&in_tree=x", "resources=VCPU:1&required=in:CUSTOM_NO"),
    *("resources=VCPU:1&root_required=CUSTOM_NO", "resources=VCPU:1&root_required="),
    *("resources=VCPU:1&root_required=CUSTOM_T,!CUSTOM_T", "resources=VCPU:1&same_subtree="),
    *("resources=VCPU:1&root_required=CUSTOM_T&root_required=CUSTOM_T", "root_required=in:A"),
    *("resources=VCPU:1&root_required=in:CUSTOM_T", "resources=VCPU:1&same_subtree=_A"),
    "resources_B=VCPU:1&resources_A=VCPU:1&group_policy=none&same_subtree=_X",
)


def _candidates() -> Iterator[Request]:
    for versions, queries in (
        ((10, 16, 17, 21, 24, 25, 31, 33, 35, 36, 39), ALWAYS),
        ((25, 32, 36, 39), GROUPED),
        ((39,), LATEST),
    ):
        for version in versions:
            for query in queries:
                yield Request("GET", f"/allocation_candidates?{query}", version=version)


def _malformed() -> Iterator[Request]:
    for body in (
        *(b"", b"{", b"[", b'{"a"}', b'{"a":}', b"{'a':1}", b'{"a":1}x', b"\xff", b'{"a":"\xff"}'),
        *(b"nul", b'"abc', b'{"a":01}', b'{"a":"\t"}', b'{"a":"\\x"}', b'{"a":-}', b"[1,2"),
        *(b"\xef\xbb\xbf{}", b'\n\n {"a" 1}', b"1e5", b'""', b'{"a":1 "b":2}', b"null", b"true"),
    ):
        yield Request("POST", "/resource_providers", body)


def bodies(version: int) -> Iterator[Request]:
    """Yield a well-formed request for each route that is refused because of what it names."""
    inventory = {"total": 9, "reserved": 1, "min_unit": 1, "step_size": 1, "allocation_ratio": 1.5}
    provider = {"name": "q", "uuid": Q}
    parent = {"parent_provider_uuid": R} if version >= 14 else {}
    yield Request("POST", "/resource_providers", provider | parent)
    yield Request("PUT", OF_P, {"name": "q"} | parent)
    yield Request("PUT", f"{OF_P}/inventories", stock(99, VCPU=inventory, DISK_GB={"total": 1}))
    yield Request("POST", f"{OF_P}/inventories", {"resource_class": "CUSTOM_NO", **inventory})
    yield Request("PUT", f"{OF_P}/inventories/VCPU", {**generation(99), **inventory})
    if version >= 19:
        yield Request("PUT", f"{OF_P}/aggregates", {"aggregates": [A], **generation(99)})
    if version >= 6:
        yield Request("PUT", f"{OF_P}/traits", {"traits": ["CUSTOM_NO"], **generation(99)})
    if version >= 2:
        yield Request("POST", "/resource_classes", {"name": "CUSTOM_A"})
    if 2 <= version < 7:
        yield Request("PUT", "/resource_classes/CUSTOM_B", {"name": "CUSTOM_A"})
    taken = _taken(version)
    yield Request("PUT", f"/allocations/{NEW}", taken)
    if version >= 13:
        yield Request("POST", "/allocations", {NEW: taken})
    if version >= 30:
        reshape = {P: stock(99, VCPU=inventory)}
        yield Request("POST", "/reshaper", {"inventories": reshape, "allocations": {NEW: taken}})


def _taken(version: int) -> dict[str, Any]:
    named: dict[str, Any] = claim(Q, VCPU=1)
    named["mappings"] = {"_A": [Q]}
    if version < 12:
        amounts = {"resource_provider": {"uuid": Q}, "resources": {"VCPU": 1}}
        named["allocations"] = [amounts]
    since = {"project_id": 8, "user_id": 8, "consumer_generation": 28}
    since |= {"mappings": 34, "consumer_type": 38}
    return {name: part for name, part in named.items() if since.get(name, 0) <= version}


def _differs_on_purpose(ask: Request, body: Any) -> bool:
    """Return whether Moorage differs on purpose: it refuses empty names."""
    return ask[:2] == ("PUT", OF_P) and isinstance(body, dict) and body.get("name") == ""


def _mutated() -> Iterator[Request]:
    chance = random.Random(20)
    for version in VERSIONS:
        for ask in bodies(version):
            yield ask._replace(version=version)
            found = [body for body in mutations(ask.body) if not _differs_on_purpose(ask, body)]
            for body in chance.sample(found, min(MUTATIONS_EACH, len(found))):
                yield ask._replace(body=json.dumps(body).encode(), version=version)
