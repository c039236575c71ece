"""Bad input is refused with a 4xx and the reason, and nothing is written."""

import json
from pathlib import Path

import pytest

from moorage.core.limits import MAX_INT
from moorage.faces.web import Limits
from tests.faces.placement.support.client import JSON, Client, Reply

RP = "4e6e6d4c-1111-4000-8000-000000000001"
CONSUMER = "4e6e6d4c-2222-4000-8000-000000000001"
DEEP = 100_000


def malformed(reply: Reply, reason: str) -> bool:
    """Return whether the body was refused for this reason."""
    return reply.status == 400 and f"Malformed JSON: {reason}" in reply.detail


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", ""),
        (b"{", ""),
        (b"\xef\xbb\xbf{}", ""),
        (b'{"name": "\xff"}', "'utf-8' codec can't decode byte 0xff in position 10"),
        (b'{"name": "\\ud800"}', ""),
        (b"[" * DEEP, "it is nested too deeply"),
        (b'{"a":' * DEEP, "it is nested too deeply"),
        (b'{"a\\n":' * 1_100 + b"1" + b"}" * 1_100, "it is nested too deeply"),
        (b'{"name": NaN}', ""),
        (b'{"name": Infinity}', ""),
        (b'{"name": 1e999}', ""),
        (b'{"name": ' + b"9" * 10_000 + b"}", ""),
        (b'{"name": "a\x00b"}', ""),
        (b'{"name": "a\\u0000b"}', "it contains the character NUL"),
        (b'{"name": [["\\u0000"]]}', "it contains the character NUL"),
        (b'{"na\\u0000me": 1}', "it contains the character NUL"),
        (b'{"name": "a", "name": "b"}', "the key 'name' is given more than once"),
        (b'{"name": "a", "n\\u0061me": "b"}', "the key 'name' is given more than once"),
        (b'{"name": "a", "x": [{"y": 1, "y": 2}]}', "the key 'y' is given more than once"),
        (b'{"name": "\\\\", "name": "b"}', "the key 'name' is given more than once"),
    ],
)
def test_malformed_json(api: Client, body: bytes, reason: str) -> None:
    """The response has the reason, and nothing is created."""
    assert malformed(api.ask("POST", "/resource_providers", body), reason)
    assert api.ask("GET", "/resource_providers").json == {"resource_providers": []}


def test_harmless_escapes_are_accepted(api: Client) -> None:
    """An escaped backslash before `u0000` is plain text, and so are colons in text."""
    for name in ("a\\u0000", "a:b::c", '"', "☃", "{"):
        assert api.ask("POST", "/resource_providers", {"name": name}).status == 200


@pytest.mark.parametrize("length", [None, "5", "999999999999999999999999"])
def test_bodies_have_a_limit(tmp_path: Path, length: str | None) -> None:
    """The error names the limit and its setting, whatever the announced length."""
    client = Client(tmp_path, Limits(body_bytes_max=1_000))
    headers = {"x-auth-token": "admin", **JSON}
    if length:
        headers["content-length"] = length
    reply = client.send("POST", "/resource_providers", headers, [b"x" * 400] * 3)
    assert reply.status == 413
    assert "larger than 1000 bytes, the limit set by body_bytes_max" in reply.detail
    client.close()


def test_the_reshaper_takes_larger_bodies(tmp_path: Path) -> None:
    """Its limit is a separate setting."""
    client = Client(tmp_path, Limits(body_bytes_max=10, bulk_bytes_max=1_000))
    assert (
        "JSON does not validate" in client.ask("POST", "/reshaper", b"{" + b" " * 900 + b"}").detail
    )
    reply = client.ask("POST", "/reshaper", b" " * 1_001)
    assert reply.status == 413
    assert "bulk_bytes_max" in reply.detail
    client.close()


def test_partial_and_compressed_bodies_are_refused(api: Client) -> None:
    """A disconnect within the body cancels the request; compressed bodies are refused."""
    headers = {"x-auth-token": "admin", **JSON}
    assert api.send("POST", "/resource_providers", headers, []).status == 400
    body = json.dumps({"name": "a"}).encode()
    pieces = [body[:3], body[3:6], body[6:]]
    assert api.send("POST", "/resource_providers", headers, pieces).status == 201
    for encoding in ("gzip", "br", "identity, gzip"):
        reply = api.ask("POST", "/resource_providers", {"name": "b"}, content_encoding=encoding)
        assert reply.status == 415
        assert "send the body uncompressed" in reply.detail


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("name=%ff", 400),
        ("name=\xff", 400),
        ("name=%00", 400),
        ("%00=a", 400),
        ("name=" + "a" * 70_000, 414),
        ("&".join(["name=a"] * 2_000), 400),
        ("resources=" + "VCPU:1," * 8_000 + "VCPU:1", 400),
        ("required=" + "A," * 2_000 + "A", 400),
        ("required=A%0A", 400),
        ("uuid=" + RP + "%0A", 400),
        ("name=a;name=b", 200),
        ("name=%zz", 200),
        ("=a", 400),
        ("&&&", 200),
    ],
)
def test_query_strings(api: Client, query: str, status: int) -> None:
    """Queries that are not UTF-8, contain NUL, or are too long are refused."""
    assert api.ask("GET", f"/resource_providers?{query}").status == status


@pytest.mark.parametrize(
    "query",
    [
        f"resources=VCPU:{10**30}",
        f"resources=VCPU:{MAX_INT}&resources1=VCPU:{10**30}",
        "resources=VCPU:1&limit=" + "9" * 300,
        "&".join(f"resources_{n}=VCPU:1" for n in range(64)) + "&group_policy=none",
        "resources=VCPU:1&" + "&".join(["required=HW_CPU_X86_AVX"] * 900),
        "resources=VCPU:1&" + "&".join([f"member_of={RP}"] * 900),
    ],
)
def test_huge_queries(api: Client, query: str) -> None:
    """Amounts beyond any integer column and as many groups as permitted are answered."""
    api.provider(RP, VCPU=4)
    reply = api.ask("GET", f"/allocation_candidates?{query}")
    assert reply.status == 200, reply.detail


@pytest.mark.parametrize("path", ["resource_providers", "allocation_candidates"])
@pytest.mark.parametrize("amount", [MAX_INT, MAX_INT + 1, 10**30])
def test_huge_amounts_with_a_step_size(api: Client, path: str, amount: int) -> None:
    """Amounts beyond any integer column must not be divided by the step, also if shared."""
    api.provider(RP)
    inventory = {"resource_class": "VCPU", "total": 4, "step_size": 2}
    assert api.ask("POST", f"/resource_providers/{RP}/inventories", inventory).status == 201
    tags = {"resource_provider_generation": 1, "traits": ["MISC_SHARES_VIA_AGGREGATE"]}
    assert api.ask("PUT", f"/resource_providers/{RP}/traits", tags).status == 200
    tags = {"resource_provider_generation": 2, "aggregates": [RP]}
    assert api.ask("PUT", f"/resource_providers/{RP}/aggregates", tags).status == 200
    reply = api.ask("GET", f"/{path}?resources=VCPU:{amount}")
    assert (reply.status, next(iter(reply.json.values()))) == (200, [])


@pytest.mark.parametrize("amount", [MAX_INT, MAX_INT + 1, 2**63, 2**64, 10**400])
def test_huge_claims_are_refused(api: Client, amount: int) -> None:
    """Amounts of any size are compared exactly."""
    api.provider(RP, VCPU=4)
    reply = api.claim(CONSUMER, RP, VCPU=amount)
    assert (reply.status, reply.code) == (409, "placement.undefined_code")
    assert api.ask("GET", f"/allocations/{CONSUMER}").json == {"allocations": {}}


def test_huge_ratios_are_valid(api: Client) -> None:
    """3.4e38 times the largest total is shown with every digit."""
    api.provider(RP)
    inventory = {"total": MAX_INT, "allocation_ratio": 3.4e38, "resource_class": "VCPU"}
    assert api.ask("POST", f"/resource_providers/{RP}/inventories", inventory).status == 201
    reply = api.ask("GET", f"/allocation_candidates?resources=VCPU:{MAX_INT}")
    shown = reply.json["provider_summaries"][RP]["resources"]["VCPU"]
    assert shown == {"capacity": int(MAX_INT * 3.4e38), "used": 0}
    for ratio in (3.5e38, 10**60):
        refused = api.ask(
            "POST",
            f"/resource_providers/{RP}/inventories",
            {**inventory, "allocation_ratio": ratio},
        )
        assert "JSON does not validate" in refused.detail


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (f"/resource_providers/{RP}/traits", {"traits": ["A"] * 100_000}),
        (f"/resource_providers/{RP}/traits", {"traits": [1, "a", {}, []] * 25_000}),
        (f"/resource_providers/{RP}/aggregates", {"aggregates": [RP] * 20_000}),
        (f"/resource_providers/{RP}/aggregates", {"aggregates": [{}, [], "a", 1] * 20_000}),
        (f"/resource_providers/{RP}/inventories", {"inventories": {"A" * 5_000: {"total": 1}}}),
        (f"/resource_providers/{RP}", {f"k{n}": n for n in range(50_000)}),
        (f"/allocations/{CONSUMER}", {"allocations": [[]] * 100_000}),
        ("/traits/CUSTOM_A\n", None),
        ("/traits/CUSTOM_" + "A" * 60_000, None),
        ("/resource_classes/CUSTOM_A\n", None),
        ('/resource_classes/"', None),
        ("/resource_classes/CUSTOM_☃", None),
    ],
)
def test_long_lists_and_odd_names(api: Client, path: str, body: dict[str, object] | None) -> None:
    """They are refused with an error of bounded length."""
    api.provider(RP)
    if body is not None:
        body.setdefault("resource_provider_generation", 0)
    reply = api.ask("PUT", path, body)
    assert reply.status == 400
    assert len(reply.body) < 200_000


def test_keys_that_differ_only_in_case_are_one(api: Client) -> None:
    """Two spellings of a consumer or provider are refused instead of added up."""
    api.provider(RP, VCPU=4)
    owner = {"project_id": "p", "user_id": "u", "consumer_generation": None, "consumer_type": "A"}
    taken = {"resources": {"VCPU": 1}}
    both = {RP: taken, RP.upper(): taken}
    reply = api.ask("PUT", f"/allocations/{CONSUMER}", {**owner, "allocations": both})
    assert "a resource provider is named twice" in reply.detail
    one = {**owner, "allocations": {RP: taken}}
    reply = api.ask("POST", "/allocations", {CONSUMER: one, CONSUMER.upper(): one})
    assert "a consumer is named twice" in reply.detail
    part = {"resource_provider_generation": 1, "inventories": {}}
    body = {"inventories": {RP: part, RP.upper(): part}, "allocations": {}}
    assert "a resource provider is named twice" in api.ask("POST", "/reshaper", body).detail
    assert api.ask("PUT", f"/allocations/{CONSUMER.upper()}", one).status == 204
    assert api.ask("GET", f"/allocations/{CONSUMER}").json["consumer_generation"] == 1


@pytest.mark.parametrize(
    ("ratio", "status"),
    [(-1e308, 400), (-3.5e38, 400), (-3.40282e38, 204), (3.40282e38, 204), (3.5e38, 400)],
)
def test_no_capacity_is_infinite(api: Client, ratio: float, status: int) -> None:
    """The reshaper refuses ratios beyond single precision, too; the largest can be shown."""
    api.provider(RP, DISK_GB=4)
    seen = api.ask("GET", f"/resource_providers/{RP}").json
    offer = {
        "resource_provider_generation": seen["generation"],
        "inventories": {
            "VCPU": {"total": MAX_INT, "allocation_ratio": ratio},
            "DISK_GB": {"total": 4},
        },
    }
    reply = api.ask("POST", "/reshaper", {"inventories": {RP: offer}, "allocations": {}})
    assert reply.status == status
    found = api.ask("GET", "/allocation_candidates?resources=DISK_GB:1")
    assert found.status == 200
    assert len(found.json["allocation_requests"]) == 1
