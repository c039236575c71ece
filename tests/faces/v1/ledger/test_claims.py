"""Claims and explanations over HTTP: input, responses and refusals."""

import json
import uuid
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from tests.e2e.support.server import serve
from tests.faces.v1.native import Native, Response

AGGREGATE = str(uuid.UUID(int=77))
HOST, CARD, OTHER = (str(uuid.UUID(int=n)) for n in (1, 2, 3))
WHO = {"project_id": "p", "user_id": "u"}
LATEST = {"OpenStack_API_Version": "placement latest"}


@pytest.fixture(scope="module")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Native]:
    """Yield a caller of a server with two hosts, the first with a card."""
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


def claim(native: Native, *groups: dict[str, Any], **more: Any) -> Response:
    """Send a claim."""
    return native.ask("POST", "/v1/claims", {"groups": groups, **WHO, **more})


def test_a_claim_is_an_allocation_like_any_other(rack: Native) -> None:
    """The response agrees with the allocations that Placement shows."""
    wanted = str(uuid.uuid4())
    answer = claim(
        rack,
        {"resources": {"VCPU": 2}},
        {"suffix": "_CARD", "resources": {"FPGA": 1}},
        consumer=wanted.upper(),
        consumer_type="INSTANCE",
    )
    assert answer.status == 201, answer
    assert answer.body == {
        "consumer": wanted,
        "generation": 1,
        "allocations": {HOST: {"VCPU": 2}, CARD: {"FPGA": 1}},
        "mappings": {"": [HOST], "_CARD": [CARD]},
    }
    held = rack.ask("GET", f"/allocations/{wanted}", **LATEST).body
    assert {p: a["resources"] for p, a in held["allocations"].items()} == answer.body["allocations"]
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
    """Each condition of a group affects the choice."""
    answer = claim(rack, {"resources": {"VCPU": 1}, **group}, **more)
    assert answer.status == 201, answer
    assert expected in (None, *answer.body["allocations"])


def test_what_does_not_fit_is_refused_with_an_explanation(rack: Native) -> None:
    """The problem has the address of an explanation of why nothing was found."""
    answer = claim(rack, {"resources": {"VCPU": 4000}, "forbidden": ["HW_CPU_X86_AVX2"]})
    assert (answer.status, answer.body["code"]) == (409, "no_capacity")
    explained = rack.ask("GET", answer.body["explain"])
    assert explained.status == 200, explained
    assert not explained.body["found"]
    assert explained.body["nearest"].startswith("VCPU: the nearest provider has ")
    assert explained.body["nearest"].endswith(" of the required 4000.")
    steps = explained.body["parts"][0]["steps"]
    assert [step["left"] for step in steps] == [3, 2, 2, 0, 0]
    assert steps[1]["condition"] == "offers VCPU"


def test_explain_by_get_and_by_post(rack: Native) -> None:
    """The query in the address or in the body gives the same explanation, found or not."""
    for amount, found in ((1, True), (4000, False)):
        question = {"groups": [{"resources": {"VCPU": amount}}], "group_policy": "isolate"}
        asked = rack.ask("POST", "/v1/explain", question)
        read = rack.ask("GET", f"/v1/explain?query={quote(json.dumps(question))}")
        assert asked.status == read.status == 200
        assert asked.body == read.body
        assert asked.body["found"] is found and (asked.body["nearest"] is None) is found


def test_callers_of_a_project_see_no_counts(rack: Native) -> None:
    """They learn whether something is found and which condition fails, but no counts."""
    bound, free = rack.token("reader", "p", name="bound"), rack.token("reader")
    for amount, found in ((1, True), (4000, False)):
        question = {"groups": [{"resources": {"VCPU": amount}}]}
        answer = rack.ask("POST", "/v1/explain", question, token=bound).body
        whole = rack.ask("POST", "/v1/explain", question, token=free).body
        assert answer["found"] is found
        steps = [step for part in answer["parts"] for step in part["steps"]] + answer["trees"]
        known = [step for part in whole["parts"] for step in part["steps"]] + whole["trees"]
        assert [step["condition"] for step in steps] == [step["condition"] for step in known]
        assert [step["left"] for step in steps] == [0 if not one["left"] else None for one in known]
        assert [part["nearest"] for part in answer["parts"]] == [None] * len(answer["parts"])
        if found:
            assert answer["nearest"] is None
        else:
            empty = next(one["condition"] for one in known if one["left"] == 0)
            assert answer["nearest"] == f"Nothing meets the condition: {empty}"


def test_a_query_too_long_for_an_address(rack: Native) -> None:
    """The problem then has the address of explanations without the query."""
    groups = [{"suffix": f"_{n:060}", "resources": {"VCPU": 4000}} for n in range(60)]
    answer = claim(rack, *groups)
    assert (answer.status, answer.body["explain"]) == (409, "/v1/explain")


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
def test_invalid_claims(rack: Native, body: Any, status: int, code: str) -> None:
    """Each is refused with its reason and takes no capacity."""
    answer = rack.ask("POST", "/v1/claims", body)
    assert (answer.status, answer.body["code"]) == (status, code), answer


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
def test_invalid_queries_are_not_explained(
    rack: Native, query: str, status: int, code: str
) -> None:
    """An invalid query is refused as in a claim."""
    answer = rack.ask("GET", f"/v1/explain{quote(query, safe='?=')}")
    assert (answer.status, answer.body["code"]) == (status, code), answer


def test_permissions_of_claims(rack: Native) -> None:
    """Readers may explain, services may claim."""
    reader, service = rack.token("reader"), rack.token("service")
    question = {"groups": [VCPU]}
    assert rack.ask("POST", "/v1/explain", question, token=reader).status == 200
    for path in ("/v1/claims", "/v1/providers:bulk"):
        assert rack.ask("POST", path, {**question, **WHO}, token=reader).status == 403
    assert rack.ask("POST", "/v1/claims", {**question, **WHO}, token=service).status == 201
