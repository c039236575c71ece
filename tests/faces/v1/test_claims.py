"""Claims and explanations over HTTP: what is understood, what is answered, what is refused."""

import json
import uuid
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from tests.e2e.support.server import serve
from tests.faces.v1.native import Native, Told

AGGREGATE = str(uuid.UUID(int=77))
HOST, CARD, OTHER = (str(uuid.UUID(int=n)) for n in (1, 2, 3))
WHO = {"project_id": "p", "user_id": "u"}
LATEST = {"OpenStack_API_Version": "placement latest"}


@pytest.fixture(scope="module")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Native]:
    """Return a caller of a server with two hosts, the first with a card."""
    database = tmp_path_factory.mktemp("claims") / "moorage.sqlite"
    with serve(database, "--no-access-log") as server:
        native = Native(server.url, database)
        wanted: list[dict[str, Any]] = [
            {
                "uuid": HOST,
                "name": "host",
                "inventories": {"VCPU": {"total": 1000}},
                "traits": ["HW_CPU_X86_AVX2"],
                "aggregates": [AGGREGATE.upper()],
            },
            {"uuid": CARD, "name": "card", "parent": HOST, "inventories": {"FPGA": {"total": 100}}},
            {"uuid": OTHER, "name": "other", "inventories": {"VCPU": {"total": 1000}}},
        ]
        assert native.ask("POST", "/v1/providers:bulk", {"providers": wanted}).status == 200
        yield native


def claim(native: Native, *groups: dict[str, Any], **more: Any) -> Told:
    """Claim."""
    return native.ask("POST", "/v1/claims", {"groups": groups, **WHO, **more})


def test_a_claim_is_an_allocation_like_any_other(rack: Native) -> None:
    """What the answer says is what Placement says of the consumer."""
    wanted = str(uuid.uuid4())
    told = claim(
        rack,
        {"resources": {"VCPU": 2}},
        {"suffix": "_CARD", "resources": {"FPGA": 1}},
        consumer=wanted.upper(),
        consumer_type="INSTANCE",
    )
    assert told.status == 201, told
    assert told.body == {
        "consumer": wanted,
        "generation": 1,
        "allocations": {HOST: {"VCPU": 2}, CARD: {"FPGA": 1}},
        "mappings": {"": [HOST], "_CARD": [CARD]},
    }
    held = rack.ask("GET", f"/allocations/{wanted}", **LATEST).body
    assert {p: a["resources"] for p, a in held["allocations"].items()} == told.body["allocations"]
    assert (held["project_id"], held["user_id"]) == ("p", "u")
    assert (held["consumer_type"], held["consumer_generation"]) == ("INSTANCE", 1)
    again = claim(rack, {"resources": {"VCPU": 2}}, consumer=wanted)
    assert (again.status, again.body["code"]) == (409, "consumer_generation")


@pytest.mark.parametrize(
    ("group", "more", "expected"),
    [
        ({"required": ["HW_CPU_X86_AVX2"]}, {}, HOST),
        ({"required": [["HW_CPU_X86_AVX2", "HW_CPU_X86_AVX"]]}, {}, HOST),
        ({"forbidden": ["HW_CPU_X86_AVX2"]}, {}, OTHER),
        ({"member_of": [AGGREGATE]}, {}, HOST),
        ({"member_of": [[AGGREGATE.upper(), OTHER]]}, {}, HOST),
        ({"not_member_of": [AGGREGATE]}, {}, OTHER),
        ({"in_tree": CARD}, {}, HOST),
        ({}, {"root_required": ["HW_CPU_X86_AVX2"]}, HOST),
        ({}, {"root_forbidden": ["HW_CPU_X86_AVX2"]}, OTHER),
        ({"suffix": "_A"}, {"same_subtree": [["_A"]], "root_required": []}, None),
    ],
)
def test_every_condition_counts(
    rack: Native, group: dict[str, Any], more: dict[str, Any], expected: str | None
) -> None:
    """Each word of the question decides who is chosen."""
    told = claim(rack, {"resources": {"VCPU": 1}, **group}, **more)
    assert told.status == 201, told
    assert expected in (None, *told.body["allocations"])


def test_what_does_not_fit_is_refused_with_an_explanation(rack: Native) -> None:
    """The problem names an address, and behind that stands why nothing was found."""
    told = claim(rack, {"resources": {"VCPU": 4000}, "forbidden": ["HW_CPU_X86_AVX2"]})
    assert (told.status, told.body["code"]) == (409, "no_capacity")
    explained = rack.ask("GET", told.body["explain"])
    assert explained.status == 200, explained
    assert not explained.body["found"]
    assert explained.body["nearest"].startswith("VCPU: the nearest provider has ")
    assert explained.body["nearest"].endswith(" of the required 4000.")
    steps = explained.body["parts"][0]["steps"]
    assert [step["left"] for step in steps] == [3, 2, 2, 0, 0]
    assert steps[1]["condition"] == "offers VCPU"


def test_both_ways_to_ask_for_an_explanation(rack: Native) -> None:
    """In the address or in the body, for something that is found or not, it is the same."""
    for amount, found in ((1, True), (4000, False)):
        question = {"groups": [{"resources": {"VCPU": amount}}], "group_policy": "isolate"}
        asked = rack.ask("POST", "/v1/explain", question)
        read = rack.ask("GET", f"/v1/explain?query={quote(json.dumps(question))}")
        assert asked.status == read.status == 200
        assert asked.body == read.body
        assert asked.body["found"] is found and (asked.body["nearest"] is None) is found


def test_callers_of_a_project_are_not_told_how_large_the_fleet_is(rack: Native) -> None:
    """Which condition leaves nothing they are told, and whether something is found."""
    bound, free = rack.token("reader", "p", name="bound"), rack.token("reader")
    for amount, found in ((1, True), (4000, False)):
        question = {"groups": [{"resources": {"VCPU": amount}}]}
        told = rack.ask("POST", "/v1/explain", question, token=bound).body
        whole = rack.ask("POST", "/v1/explain", question, token=free).body
        assert told["found"] is found
        steps = [step for part in told["parts"] for step in part["steps"]] + told["trees"]
        known = [step for part in whole["parts"] for step in part["steps"]] + whole["trees"]
        assert [step["condition"] for step in steps] == [step["condition"] for step in known]
        assert [step["left"] for step in steps] == [0 if not one["left"] else None for one in known]
        assert [part["nearest"] for part in told["parts"]] == [None] * len(told["parts"])
        if found:
            assert told["nearest"] is None
        else:
            empty = next(one["condition"] for one in known if one["left"] == 0)
            assert told["nearest"] == f"Nothing meets the condition: {empty}"


def test_a_question_too_long_for_an_address(rack: Native) -> None:
    """Then the address is that of the explanation, without the question."""
    groups = [{"suffix": f"_{n:060}", "resources": {"VCPU": 4000}} for n in range(60)]
    told = claim(rack, *groups)
    assert (told.status, told.body["explain"]) == (409, "/v1/explain")


VCPU = {"resources": {"VCPU": 1}}


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({}, 400, "refused"),
        ({"groups": []}, 400, "refused"),
        ({"groups": [], **WHO}, 400, "invalid"),
        ({"groups": [{}], **WHO}, 400, "invalid"),
        ({"groups": [VCPU, VCPU], **WHO}, 400, "invalid"),
        ({"groups": [{"resources": {"VCPU": 0}}], **WHO}, 400, "invalid"),
        ({"groups": [{"resources": {"VCPU": "1"}}], **WHO}, 400, "refused"),
        ({"groups": [{**VCPU, "more": 1}], **WHO}, 400, "refused"),
        ({"groups": [{**VCPU, "in_tree": "x"}], **WHO}, 400, "invalid"),
        ({"groups": [{**VCPU, "member_of": ["x"]}], **WHO}, 400, "invalid"),
        ({"groups": [{**VCPU, "required": [[]]}], **WHO}, 400, "invalid"),
        ({"groups": [{**VCPU, "member_of": [[]]}], **WHO}, 400, "invalid"),
        ({"groups": [{"resources": {"CUSTOM_X": 1}}], **WHO}, 422, "class_unknown"),
        ({"groups": [{**VCPU, "required": ["CUSTOM_X"]}], **WHO}, 422, "trait_unknown"),
        ({"groups": [VCPU], **WHO, "choose": "best"}, 400, "refused"),
        ({"groups": [VCPU], **WHO, "group_policy": "x"}, 400, "refused"),
        ({"groups": [VCPU], **WHO, "consumer": "x"}, 400, "invalid"),
        ({"groups": [VCPU], **WHO, "consumer_type": "a b"}, 400, "invalid"),
        ({"groups": [VCPU], **WHO, "project_id": ""}, 400, "invalid"),
        ({"groups": [VCPU], **WHO, "user_id": "x" * 256}, 400, "invalid"),
        ({"groups": [VCPU], **WHO, "user_id": "x\x1b[2J"}, 400, "invalid"),
        ({"groups": [VCPU], **WHO, "project_id": "a\nb"}, 400, "invalid"),
        ({"groups": [VCPU], **WHO, "limit": 1}, 400, "refused"),
    ],
)
def test_wishes_without_sense(rack: Native, body: Any, status: int, code: str) -> None:
    """Each is refused with its reason, and takes nothing."""
    told = rack.ask("POST", "/v1/claims", body)
    assert (told.status, told.body["code"]) == (status, code), told


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ("", 400, "refused"),
        ("?query=", 400, "refused"),
        ("?query={", 400, "refused"),
        ("?query=[]", 400, "refused"),
        ('?query={"groups":[]}', 400, "invalid"),
        ('?query={"groups":[{"resources":{"X":1}}]}', 422, "class_unknown"),
        ("?other=1", 400, "refused"),
    ],
)
def test_explanations_of_nonsense(rack: Native, query: str, status: int, code: str) -> None:
    """A question that is none is refused as a claim would be."""
    told = rack.ask("GET", f"/v1/explain{quote(query, safe='?=')}")
    assert (told.status, told.body["code"]) == (status, code), told


def test_who_may(rack: Native) -> None:
    """Readers may ask why, services may claim."""
    reader, service = rack.token("reader"), rack.token("service")
    question = {"groups": [VCPU]}
    assert rack.ask("POST", "/v1/explain", question, token=reader).status == 200
    for path in ("/v1/claims", "/v1/providers:bulk"):
        assert rack.ask("POST", path, {**question, **WHO}, token=reader).status == 403
    assert rack.ask("POST", "/v1/claims", {**question, **WHO}, token=service).status == 201
