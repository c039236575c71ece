"""Where it fits: the page and the API of explanations take every query that Placement takes."""

import uuid
from collections.abc import Iterator
from random import Random
from urllib.parse import quote, urlencode

import pytest

from tests.faces.dashboard.support.browserless import signed_in
from tests.faces.dashboard.support.elements import every
from tests.faces.v1.native import Native

LATEST = {"OpenStack_API_Version": "placement 1.39"}
ZONE, RACK, NOBODY = (str(uuid.UUID(int=900 + n)) for n in range(3))
HOST, CELL, CARD, NODE = (str(uuid.UUID(int=910 + n)) for n in range(4))
DISABLED = "COMPUTE_STATUS_DISABLED"

Pairs = list[tuple[str, str]]


@pytest.fixture(scope="module")
def fleet(native: Native) -> Native:
    """Return a caller of a server with a host of two parts, disabled, and a node of bare metal."""
    wanted = [
        {
            "uuid": HOST,
            "name": "host",
            "inventories": {"MEMORY_MB": {"total": 64}},
            "traits": [DISABLED],
            "aggregates": [ZONE],
        },
        {
            "uuid": CELL,
            "name": "cell",
            "parent": HOST,
            "inventories": {"VCPU": {"total": 4}},
            "traits": ["HW_NUMA_ROOT"],
        },
        {"uuid": CARD, "name": "card", "parent": CELL, "inventories": {"CUSTOM_VF": {"total": 2}}},
        {
            "uuid": NODE,
            "name": "node",
            "inventories": {"CUSTOM_BM": {"total": 1}},
            "traits": ["HW_NUMA_ROOT"],
            "aggregates": [RACK],
        },
    ]
    body = {"providers": wanted, "create_vocabulary": True}
    assert native.ask("POST", "/v1/providers:bulk", body).status == 200
    return native


ROOT, ANY = f"root_required={DISABLED}", f"in:HW_NUMA_ROOT,{DISABLED}"
PARTS: tuple[tuple[str, ...], ...] = (
    ("", "resources=VCPU:1", "resources=VCPU:1,MEMORY_MB:32", "resources=VCPU:9", "resources=X:1"),
    ("", "resources_A=CUSTOM_VF:1", "resources1=CUSTOM_VF:3", "resources_B=CUSTOM_BM:1"),
    ("", "required_A=HW_NUMA_ROOT", "required=!HW_NUMA_ROOT", f"required={ANY}"),
    ("", "", f"root_required=!{DISABLED}", ROOT, "root_required=HW_NUMA_ROOT"),
    ("", f"member_of={ZONE}", f"member_of=in:{ZONE},{RACK}", f"member_of=!{ZONE}"),
    ("", f"member_of=!in:{RACK},{NOBODY}", f"member_of={RACK}&member_of={ZONE}"),
    ("", "", f"in_tree={CARD}", f"in_tree={NODE}", f"in_tree_A={CELL}", "in_tree=x"),
    ("", "", "resources_C=VCPU:1&same_subtree=_A,_C", "required_T=HW_NUMA_ROOT&same_subtree=_T,_A"),
    ("", f"required={DISABLED}&required=HW_NUMA_ROOT", "limit=5", "limit=x", "wat=1"),
    ("group_policy=none", "group_policy=isolate", "group_policy=some"),
)
"""Parts of queries. One of each makes a query, of which some cannot be understood."""


def queries() -> Iterator[str]:
    """Yield random queries."""
    for number in range(200):
        random = Random(f"fit/{number}")
        # Most parts are left out, so that many queries are answered.
        chosen = [p[0] if random.random() < 0.75 else random.choice(p) for p in PARTS]
        chosen[0] = chosen[0] or "resources=MEMORY_MB:1"
        yield "&".join(filter(None, chosen))


def test_it_fits_where_placement_finds_candidates(fleet: Native) -> None:
    """Every query is answered like Placement's, on the page as in the API, or refused as there."""
    browser = signed_in(fleet, "reader")
    seen = {"fits": 0, "nowhere": 0, "refused": 0}
    for query in queries():
        known = fleet.ask("GET", f"/allocation_candidates?{query}", **LATEST)
        told = fleet.ask("GET", f"/v1/explain?candidates={quote(query)}")
        page = browser.get(f"/ui/fit?{query}")
        assert page.status == 200
        if known.status == 200:
            found = bool(known.body["allocation_requests"])
            assert (told.status, told.body.get("found")) == (200, found), query
            assert ("It fits." in page.body, "It fits nowhere." in page.body) == (found, not found)
            assert fields_ask_the_same(fleet, page.body, query) == found, query
            seen["fits" if found else "nowhere"] += 1
        else:
            assert told.status in (400, 422), query
            assert "It fits" not in page.body and 'class="error"' in page.body, query
            seen["refused"] += 1
    assert min(seen.values()) > 10, seen


def fields_ask_the_same(fleet: Native, page: str, query: str) -> bool:
    """Send the form of a page; return whether it then says that it fits."""
    browser = signed_in(fleet, "reader")
    shown = browser.get(f"/ui/fit?{query}")
    assert shown.body.count("<form") == page.count("<form")
    fields = [
        (one.attributes["name"], one.attributes["value"])
        for one in every(shown, "input")
        if one.attributes["name"] not in ("query", "form_token", "text")
    ]
    policy = "isolate" if "group_policy=isolate" in query else "none"
    again = browser.get(f"/ui/fit?{urlencode([*fields, ('group_policy', policy)])}")
    assert 'class="error"' not in again.body, query
    return "It fits." in again.body


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("?resources=VCPU:1", "It fits."),
        ("http://h/placement/allocation_candidates?limit=1000&resources=VCPU%3A1", "It fits."),
        (f"resources=VCPU%3A1&root_required=%21{DISABLED}", "It fits nowhere."),
        (
            "REQ: curl -X GET 'http://h/allocation_candidates?resources=VCPU:1&limit=2' -H 'a: b'",
            "It fits.",
        ),
        ("GET /allocation_candidates?resources1=VCPU%3A1&amp;limit=1000 HTTP/1.1", "It fits."),
        (
            "Make a GET http request to /allocation_candidates?limit=1000&resources=VCPU%3A1, "
            "request_id is req-1. get /usr/lib/nova/scheduler/client/report.py:295",
            "It fits.",
        ),
        (f"`GET /allocation_candidates?resources=VCPU:1&root_required=!{DISABLED}`", "nowhere."),
        ("see <http://h/placement/allocation_candidates?resources=VCPU:1>.", "It fits."),
        ("(see http://h/placement?resources=VCPU:1)", "It fits."),
        (
            '{"uri":"/allocation_candidates?resources=VCPU:1\\u0026'
            f'root_required=!{DISABLED}","status":200}}',
            "It fits nowhere.",
        ),
        (rf"curl h/allocation_candidates?resources=VCPU:1\&root_required=\!{DISABLED}", "nowhere."),
        (r'"GET \"/allocation_candidates?resources=VCPU:1\" 200"', "It fits."),
        (
            "GET /allocation_candidates?resources=VCPU:1\n"
            "GET /allocation_candidates?resources=VCPU:99",
            "several queries",
        ),
        ("resources=VCPU:1&resources=MEMORY_MB:1", "resources: given more than once"),
        ("resources=VCPU:1&group_polici=none&wat=1", "group_polici, wat: unknown"),
        ("resources=VCPU:1&group_policy=each", "&#39;each&#39; is not one of"),
        ("resources1=VCPU:1&same_subtree=_A", "Real suffixes"),
        ("VCPU=1", "It fits."),
        ("VCPU:1, MEMORY_MB=32", "It fits."),
        ("VCPU=x", "VCPU: unknown"),
        ("resources=CUSTOM_LOST:1", "No such resource class CUSTOM_LOST"),
        ("nothing", "nothing: unknown"),
    ],
)
def test_pasted_queries(fleet: Native, text: str, says: str) -> None:
    """Out of logs, with or without the address; what is not understood is named."""
    page = signed_in(fleet, "reader").get(f"/ui/fit?{urlencode({'query': text})}")
    assert page.status == 200 and says in page.body
    assert page.document.inline == []


def test_fields_are_lenient(fleet: Native) -> None:
    """Spaces, line breaks and equals signs are taken as people type them; empty fields are not."""
    browser = signed_in(fleet, "reader")
    typed = [
        ("resources", " VCPU=1;\tMEMORY_MB:32 "),
        ("required", DISABLED),
        ("member_of", f"{ZONE} {ZONE}"),
        ("in_tree", f" {CARD} "),
        ("resources1", "CUSTOM_VF:1"),
        ("required1", ""),
        ("same_subtree", " 1 "),
    ]
    assert "It fits." in browser.get(f"/ui/fit?{urlencode(typed)}").body
    both = urlencode([*typed, ("query", "resources=VCPU:1")])
    assert "leave one of them out" in browser.get(f"/ui/fit?{both}").body
    empty = browser.get("/ui/fit?resources=&required=&group_policy=none&query=")
    assert 'class="error"' not in empty.body and "It fits" not in empty.body
