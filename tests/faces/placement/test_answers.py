"""Responses: headers, links and the forms that microversions give them."""

import sqlite3
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import pytest

from tests.faces.placement.support.client import BEGINNING, BEGINNING_TEXT, Client

RP = "4e6e6d4c-1111-4000-8000-000000000001"
CHILD = "4e6e6d4c-1111-4000-8000-000000000002"
AGGREGATE = "4e6e6d4c-3333-4000-8000-000000000001"
CONSUMER = "4e6e6d4c-2222-4000-8000-000000000001"
HOUR = 3_600 * 1_000_000
LATER_TEXT = "Tue, 14 Nov 2023 23:13:20 GMT"
PATH = f"/resource_providers/{RP}"


def pass_an_hour(api: Client) -> None:
    """Advance the clock by an hour."""
    api.clock.at += HOUR


def test_every_answer_names_its_version(api: Client) -> None:
    """The header `Vary` tells caches that the response depends on the version."""
    for path in ("/traits", "/nowhere", "/resource_providers/x"):
        reply = api.ask("GET", path, version=17)
        assert reply.headers["openstack-api-version"] == "placement 1.17"
        assert reply.headers["vary"] == "openstack-api-version"


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/resource_providers",
        PATH,
        f"{PATH}/inventories",
        f"{PATH}/inventories/VCPU",
        f"{PATH}/usages",
        f"{PATH}/allocations",
        f"{PATH}/aggregates",
        f"{PATH}/traits",
        "/usages?project_id=p",
        f"/allocations/{CONSUMER}",
        "/allocation_candidates?resources=VCPU:1",
    ],
)
def test_reads_have_cache_headers_since_1_15(api: Client, path: str) -> None:
    """Since 1.15 only, and caches must revalidate."""
    api.provider(RP, VCPU=4)
    reply = api.ask("GET", path, version=15)
    assert reply.headers["cache-control"] == "no-cache"
    assert reply.headers["last-modified"] == BEGINNING_TEXT
    before = api.ask("GET", path, version=14)
    assert not {"cache-control", "last-modified"} & set(before.headers)


def test_last_modified_is_the_time_of_what_is_shown(api: Client) -> None:
    """It is the time of the newest row shown, or the present if no row has a time."""
    api.provider(RP, VCPU=4)
    pass_an_hour(api)
    for path in ("/resource_providers", PATH, f"{PATH}/inventories", f"{PATH}/inventories/VCPU"):
        assert api.ask("GET", path).headers["last-modified"] == BEGINNING_TEXT
    for path in (f"{PATH}/usages", f"{PATH}/aggregates", f"{PATH}/traits"):
        assert api.ask("GET", path).headers["last-modified"] == LATER_TEXT
    api.ask("PUT", "/traits/CUSTOM_A")
    pass_an_hour(api)
    assert api.ask("GET", "/traits/CUSTOM_A").headers["last-modified"] == LATER_TEXT
    assert api.ask("PUT", "/traits/CUSTOM_A").headers["last-modified"] == LATER_TEXT


def test_standard_names_are_as_old_as_the_ledger(tmp_path: Path) -> None:
    """They are as old as the database by its own clock, and a restart does not change that."""
    paths = ("/resource_classes/VCPU", "/resource_classes", "/traits/HW_CPU_X86_AVX", "/traits")
    (tmp_path / "before").touch()
    api = Client(tmp_path)
    (tmp_path / "after").touch()
    made = {path: api.ask("GET", path).headers["last-modified"] for path in paths}
    (text,) = set(made.values())
    before, after = ((tmp_path / name).stat().st_mtime for name in ("before", "after"))
    assert int(before) - 1 <= parsedate_to_datetime(text).timestamp() <= after
    api.provider(RP)
    body = {"traits": ["HW_CPU_X86_AVX"], "resource_provider_generation": 0}
    assert api.ask("PUT", f"{PATH}/traits", body).headers["last-modified"] == text
    assert api.ask("GET", f"{PATH}/traits").headers["last-modified"] == text
    with sqlite3.connect(tmp_path / "ledger.sqlite") as other:
        other.execute("UPDATE beginning SET at = ?", (BEGINNING,))
    other.close()
    api.close()
    api = Client(tmp_path)
    assert {api.ask("GET", path).headers["last-modified"] for path in paths} == {BEGINNING_TEXT}
    pass_an_hour(api)
    api.ask("PUT", "/resource_classes/CUSTOM_A")
    api.ask("PUT", "/traits/CUSTOM_A")
    for path in ("/resource_classes", "/traits"):
        assert api.ask("GET", path).headers["last-modified"] == LATER_TEXT
    api.close()


def test_an_update_has_the_time_of_the_previous_one(api: Client) -> None:
    """Creating a root counts as an update, creating a child does not and has no Last-Modified."""
    api.provider(RP)
    api.provider(CHILD, parent=RP)
    pass_an_hour(api)
    reply = api.ask("PUT", f"/resource_providers/{CHILD}", {"name": "child"})
    assert reply.headers["cache-control"] == "no-cache"
    assert "last-modified" not in reply.headers
    for _ in range(2):
        reply = api.ask("PUT", f"/resource_providers/{CHILD}", {"name": "child"})
        assert reply.headers["last-modified"] == LATER_TEXT
    reply = api.ask("PUT", PATH, {"name": "root"})
    assert reply.headers["last-modified"] == BEGINNING_TEXT
    assert api.ask("GET", PATH).headers["last-modified"] == LATER_TEXT
    pass_an_hour(api)
    assert api.ask("PUT", PATH, {"name": "root"}).headers["last-modified"] == LATER_TEXT
    assert api.ask("GET", PATH).headers["last-modified"] == LATER_TEXT


def test_empty_inventories_have_no_last_modified(api: Client) -> None:
    """Neither after all inventories are removed nor if there were none."""
    api.provider(RP, VCPU=4)
    body = {"resource_provider_generation": 1, "inventories": {}}
    for reply in (
        api.ask("PUT", f"{PATH}/inventories", body),
        api.ask("GET", f"{PATH}/inventories"),
    ):
        assert reply.status == 200
        assert reply.headers["cache-control"] == "no-cache"
        assert "last-modified" not in reply.headers


def test_numbers_are_echoed_as_they_were_sent(api: Client) -> None:
    """A PUT returns a ratio of 1 as 1; a later GET returns it with a fraction."""
    api.provider(RP)
    sent = {"total": 4, "allocation_ratio": 1}
    both = {
        "resource_provider_generation": 0,
        "inventories": {"VCPU": sent, "DISK_GB": {"total": 2}},
    }
    text = api.ask("PUT", f"{PATH}/inventories", both).body
    assert text.count(b'"allocation_ratio":1}') == text.count(b'"allocation_ratio":1.0}') == 1
    text = api.ask("POST", f"{PATH}/inventories", {**sent, "resource_class": "MEMORY_MB"}).body
    assert b'"allocation_ratio":1,' in text
    one = {**sent, "resource_provider_generation": 2}
    text = api.ask("PUT", f"{PATH}/inventories/VCPU", one).body
    assert b'"allocation_ratio":1,' in text
    assert b'"allocation_ratio":1.0,' in api.ask("GET", f"{PATH}/inventories/VCPU").body


def test_writes_without_a_body_have_none(api: Client) -> None:
    """Such responses have neither content type nor cache headers."""
    api.provider(RP, VCPU=4)
    replies = [
        api.ask("PUT", "/resource_classes/CUSTOM_A"),
        api.ask("POST", "/resource_classes", {"name": "CUSTOM_B"}),
        api.claim(CONSUMER, RP, VCPU=1),
        api.ask("DELETE", f"/allocations/{CONSUMER}"),
        api.ask("POST", "/resource_providers", {"name": "old"}, version=19),
        api.ask("DELETE", PATH),
    ]
    assert [reply.status for reply in replies] == [201, 201, 204, 204, 201, 204]
    for reply in replies:
        assert (reply.body, reply.headers["content-length"]) == (b"", "0")
        assert not {"content-type", "cache-control", "last-modified"} & set(reply.headers)


def test_locations_are_absolute(api: Client) -> None:
    """They have the host of the request and the path where the service is mounted."""
    for api.prefix, base in (("", "/"), ("/placement", "/placement/")):
        name = f"CUSTOM_{len(api.prefix)}"
        reply = api.ask("PUT", f"/traits/{name}")
        assert reply.headers["location"] == f"http://moorage.example:8778{base}traits/{name}"
    body = {"name": "a", "uuid": RP.upper()}
    reply = api.ask("POST", "/resource_providers", body)
    assert reply.headers["location"].endswith(f"/placement/resource_providers/{RP}")
    assert reply.json["links"][0]["href"] == f"/placement/resource_providers/{RP}"
    reply = api.ask("POST", f"{PATH}/inventories", {"resource_class": "VCPU", "total": 1})
    assert reply.headers["location"].endswith(f"/placement{PATH}/inventories/VCPU")


@pytest.mark.parametrize(
    ("version", "relations", "tree"),
    [
        (0, ["self", "inventories", "usages"], False),
        (1, ["self", "inventories", "usages", "aggregates"], False),
        (6, ["self", "inventories", "usages", "aggregates", "traits"], False),
        (11, ["self", "inventories", "usages", "aggregates", "traits", "allocations"], False),
        (14, ["self", "inventories", "usages", "aggregates", "traits", "allocations"], True),
    ],
)
def test_fields_of_a_provider_by_version(
    api: Client, version: int, relations: list[str], tree: bool
) -> None:
    """Links are in this order; parent and root are shown since 1.14."""
    api.provider(RP)
    api.provider(CHILD, RP)
    shown = api.ask("GET", f"/resource_providers/{CHILD}", version=version).json
    assert [link["rel"] for link in shown["links"]] == relations
    expected = {"parent_provider_uuid": RP, "root_provider_uuid": RP} if tree else {}
    assert {key: value for key, value in shown.items() if key.endswith("provider_uuid")} == expected


def candidates(api: Client, version: int, query: str = "resources=VCPU:1") -> Any:
    """Return the candidates of a query."""
    reply = api.ask("GET", f"/allocation_candidates?{query}", version=version)
    assert reply.status == 200, reply.detail
    return reply.json


def test_fields_of_candidates_by_version(api: Client) -> None:
    """From the list of 1.10 to the mappings of 1.34."""
    api.provider(RP, VCPU=4, DISK_GB=10)
    api.provider(CHILD, RP)
    requests = {
        version: candidates(api, version)["allocation_requests"][0] for version in (11, 33, 39)
    }
    taken = {"resources": {"VCPU": 1}}
    assert requests[11] == {"allocations": [{"resource_provider": {"uuid": RP}, **taken}]}
    assert requests[33] == {"allocations": {RP: taken}}
    assert requests[39] == {"allocations": {RP: taken}, "mappings": {"": [RP]}}
    vcpu = {"VCPU": {"capacity": 4, "used": 0}}
    both = {**vcpu, "DISK_GB": {"capacity": 10, "used": 0}}
    tree = {"parent_provider_uuid": None, "root_provider_uuid": RP}
    child = {"parent_provider_uuid": RP, "root_provider_uuid": RP, "resources": {}, "traits": []}
    summaries = {
        version: candidates(api, version)["provider_summaries"] for version in (16, 26, 28, 29)
    }
    assert summaries[16] == {RP: {"resources": vcpu}}
    assert summaries[26] == {RP: {"resources": vcpu, "traits": []}}
    assert summaries[28] == {RP: {"resources": both, "traits": []}}
    assert summaries[29] == {RP: {"resources": both, "traits": [], **tree}, CHILD: child}


def test_remembered_summaries_follow_every_change(api: Client) -> None:
    """Cached summaries follow usage, capacity, traits and the tree, and are dropped by a wipe."""
    api.provider(RP, VCPU=4)

    def shown() -> Any:
        return candidates(api, 39)["provider_summaries"][RP]

    assert shown()["resources"]["VCPU"] == {"capacity": 4, "used": 0}
    assert api.claim(CONSUMER, RP, VCPU=1).status == 204
    assert shown()["resources"]["VCPU"] == {"capacity": 4, "used": 1}
    body = {"resource_provider_generation": 2, "traits": ["HW_CPU_X86_AVX"]}
    assert api.ask("PUT", f"{PATH}/traits", body).status == 200
    assert shown()["traits"] == ["HW_CPU_X86_AVX"]
    api.provider(CHILD)
    assert api.ask("PUT", PATH, {"name": "b", "parent_provider_uuid": CHILD}).status == 200
    assert shown()["root_provider_uuid"] == CHILD
    api.run(api.service.operations.wipe())
    api.provider(RP, VCPU=9)
    assert shown()["resources"]["VCPU"] == {"capacity": 9, "used": 0}


def test_a_limited_search_starts_at_changing_providers(api: Client) -> None:
    """So that concurrent schedulers do not all get the same provider."""
    uuids = [f"4e6e6d4c-4444-4000-8000-{number:012}" for number in range(4)]
    for uuid in uuids:
        api.provider(uuid, VCPU=1)
    found = set()
    for _ in uuids:
        requests = candidates(api, 39, "resources=VCPU:1&limit=1")["allocation_requests"]
        found.update(requests[0]["allocations"])
    assert found == set(uuids)


def test_unknown_names_and_uuids_in_queries(api: Client) -> None:
    """An unknown class or trait is an error; an aggregate without providers is not."""
    api.provider(RP, VCPU=1)
    refused = {
        "/allocation_candidates?resources=CUSTOM_X:1": (
            "Invalid resource class in resources parameter: No such resource class CUSTOM_X."
        ),
        "/allocation_candidates?resources=VCPU:1&required=!CUSTOM_X": "No such trait(s): CUSTOM_X.",
        "/resource_providers?required=CUSTOM_X": (
            'Invalid trait(s) in "required" parameter: No such trait(s): CUSTOM_X.'
        ),
    }
    for path, words in refused.items():
        reply = api.ask("GET", path)
        assert reply.status == 400
        assert words in reply.detail
    for more in (f"member_of={AGGREGATE}", f"in_tree={AGGREGATE}"):
        assert candidates(api, 39, f"resources=VCPU:1&{more}")["allocation_requests"] == []
        listed = api.ask("GET", f"/resource_providers?{more}")
        assert listed.json == {"resource_providers": []}


def test_usages_by_type(api: Client) -> None:
    """Consumers made before 1.38 have an unknown type; `all` is a single sum."""
    api.provider(RP, VCPU=8)
    api.claim(CONSUMER, RP, VCPU=2)
    owner = {"project_id": "project", "user_id": "other", "consumer_generation": None}
    old = {**owner, "allocations": {RP: {"resources": {"VCPU": 3}}}}
    assert api.ask("PUT", f"/allocations/{CHILD}", old, version=37).status == 204
    expected = {
        "": {
            "INSTANCE": {"VCPU": 2, "consumer_count": 1},
            "unknown": {"VCPU": 3, "consumer_count": 1},
        },
        "&consumer_type=all": {"all": {"VCPU": 5, "consumer_count": 2}},
        "&consumer_type=unknown": {"unknown": {"VCPU": 3, "consumer_count": 1}},
        "&consumer_type=INSTANCE": {"INSTANCE": {"VCPU": 2, "consumer_count": 1}},
        "&consumer_type=ALL": {},
        "&user_id=other": {"unknown": {"VCPU": 3, "consumer_count": 1}},
        "&user_id=nobody": {},
        "&user_id=nobody&consumer_type=all": {},
    }
    for query, usages in expected.items():
        reply = api.ask("GET", f"/usages?project_id=project{query}")
        assert reply.json == {"usages": usages}, query
    assert api.ask("GET", "/usages?project_id=project", version=37).json == {"usages": {"VCPU": 5}}
    assert api.ask("GET", f"/allocations/{CHILD}").json["consumer_type"] == "unknown"


def test_a_refused_claim_creates_no_consumer(api: Client) -> None:
    """The corrected request is again one of a new consumer (OpenStack Placement responds 409)."""
    api.provider(RP, VCPU=8)
    refused = api.claim(CONSUMER, CHILD, VCPU=1)
    assert refused.status == 400
    assert f"Allocation for resource provider '{CHILD}' that does not exist." in refused.detail
    assert api.claim(CONSUMER, RP, VCPU=1).status == 204


def test_the_reshaper_names_an_unknown_provider(api: Client) -> None:
    """The error has the code that the API reference lists for it."""
    part = {"resource_provider_generation": 0, "inventories": {}}
    reply = api.ask("POST", "/reshaper", {"inventories": {RP: part}, "allocations": {}})
    assert (reply.status, reply.code) == (400, "placement.resource_provider.not_found")
    assert api.ask("GET", PATH).code == "placement.undefined_code"


def test_codes_of_inventories_in_use(api: Client) -> None:
    """As in OpenStack Placement, deleting one is a concurrent update, deleting all is `inuse`."""
    api.provider(RP, VCPU=8)
    api.claim(CONSUMER, RP, VCPU=1)
    one = api.ask("DELETE", f"{PATH}/inventories/VCPU")
    assert (one.status, one.code) == (409, "placement.concurrent_update")
    everything = api.ask("DELETE", f"{PATH}/inventories")
    assert (everything.status, everything.code) == (409, "placement.inventory.inuse")


def test_aggregates_keep_the_order_of_the_request(api: Client) -> None:
    """In the order of the request and in lower case; since 1.19 with the generation."""
    api.provider(RP)
    named = [AGGREGATE.upper(), CHILD]
    old = api.ask("PUT", f"{PATH}/aggregates", named, version=18)
    assert old.json == {"aggregates": [AGGREGATE, CHILD]}
    new = {"aggregates": named, "resource_provider_generation": 0}
    reply = api.ask("PUT", f"{PATH}/aggregates", new)
    assert reply.json == {"aggregates": [AGGREGATE, CHILD], "resource_provider_generation": 1}
    twice = {"aggregates": [CHILD, CHILD], "resource_provider_generation": 1}
    assert "has non-unique elements" in api.ask("PUT", f"{PATH}/aggregates", twice).detail


def test_a_stopping_service_responds_503(api: Client) -> None:
    """A service that is shutting down responds 503 with Retry-After."""
    api.run(api.service.transactor.stop())
    reply = api.ask("PUT", "/traits/CUSTOM_A")
    assert reply.status == 503
    assert reply.headers["retry-after"] == "1"


def test_an_empty_name_is_ignored(api: Client) -> None:
    """It is ignored; the other conditions apply."""
    api.provider(RP)
    api.provider(CHILD)
    listed = api.ask("GET", "/resource_providers?name=").json["resource_providers"]
    assert [each["uuid"] for each in listed] == [RP, CHILD]
    listed = api.ask("GET", f"/resource_providers?name=&uuid={RP}").json["resource_providers"]
    assert [each["uuid"] for each in listed] == [RP]


def test_a_class_may_keep_its_own_name(api: Client) -> None:
    """Before 1.7 a class is renamed; its present name is not a conflict."""
    api.ask("PUT", "/resource_classes/CUSTOM_GOLD")
    body = {"name": "CUSTOM_GOLD"}
    reply = api.ask("PUT", "/resource_classes/CUSTOM_GOLD", body, version=6)
    assert (reply.status, reply.json["name"]) == (200, "CUSTOM_GOLD")
