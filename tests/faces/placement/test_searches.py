"""What clients of candidates see of the bounds of a search."""

import json

import pytest

from moorage.faces.long_answers import WHOLE_BYTES_MAX
from tests.faces.placement.support.client import Client

HOSTS = 30
PORTS = 6


def uuid(number: int) -> str:
    """Return the UUID of a provider."""
    return f"00000000-0000-4000-8000-{number:012d}"


@pytest.fixture
def ported(api: Client) -> Client:
    """Return a client of hosts with one-unit ports."""
    api.ask("PUT", "/resource_classes/CUSTOM_NIC")
    for host in range(HOSTS):
        api.provider(uuid(100 * host))
        for port in range(1, PORTS + 1):
            api.provider(uuid(100 * host + port), parent=uuid(100 * host), CUSTOM_NIC=1)
    return api


def asking(groups: int, more: str = "") -> str:
    """Return the address of a question for so many ports of one host."""
    parts = "&".join(f"resources{n}=CUSTOM_NIC:1" for n in range(1, groups + 1))
    return f"/allocation_candidates?{parts}&group_policy=isolate{more}"


@pytest.mark.parametrize("version", [25, 29, 36, 39])
def test_nothing_found_in_the_steps_is_no_empty_answer(ported: Client, version: int) -> None:
    """503 with Retry-After in the API's own form; with steps enough the same is answered."""
    searches = ported.service.searches
    enough, searches.steps_max = searches.steps_max, 1
    question = asking(2 if version >= 29 else 1)  # before, one tree offers one provider
    reply = ported.ask("GET", question, version=version)
    assert reply.status == 503
    assert reply.headers["retry-after"] == "1"
    assert "ran out of steps before it found anything" in reply.detail
    (error,) = reply.json["errors"]
    assert error["title"] == "Service Unavailable" and error["status"] == 503
    searches.steps_max = enough
    assert ported.ask("GET", question, version=version).json["allocation_requests"]


def test_before_1_25_too(ported: Client) -> None:
    """The error of versions without granular groups is the same."""
    ported.service.searches.steps_max = 1
    for version in (10, 17, 23):
        reply = ported.ask("GET", "/allocation_candidates?resources=CUSTOM_NIC:1", version=version)
        assert reply.status == 503 and reply.headers["retry-after"] == "1"


def test_what_was_found_is_answered(ported: Client) -> None:
    """A search that is cut has candidates of as many hosts as it came to."""
    ported.service.searches.steps_max = 900
    reply = ported.ask("GET", asking(2))
    assert reply.status == 200
    found = reply.json["allocation_requests"]
    assert 0 < len(found) < HOSTS * PORTS * (PORTS - 1)
    assert ported.service.searches.counters.cut == 1


def test_a_long_answer_comes_in_pieces(ported: Client) -> None:
    """It is whole and valid, and has every summary once; a short one says how long it is."""
    reply = ported.ask("GET", asking(3))
    assert len(reply.body) > WHOLE_BYTES_MAX
    assert "content-length" not in reply.headers
    pairs: list[str] = []

    def noted(members: list[tuple[str, object]]) -> dict[str, object]:
        pairs.extend(name for name, _ in members)
        return dict(members)

    found = json.loads(reply.body, object_pairs_hook=noted)
    assert len(found["allocation_requests"]) == HOSTS * PORTS * (PORTS - 1) * (PORTS - 2)
    assert len(found["provider_summaries"]) == HOSTS * (PORTS + 1)
    assert pairs.count("parent_provider_uuid") == HOSTS * (PORTS + 1)
    short = ported.ask("GET", asking(3, "&limit=7"))
    assert len(short.json["allocation_requests"]) == 7
    assert short.headers["content-length"] == str(len(short.body))


def test_one_of_each_host_comes_first(ported: Client) -> None:
    """With a limit of the number of hosts, each host is offered once."""
    for _ in range(3):
        reply = ported.ask("GET", asking(3, f"&limit={HOSTS}"))
        found = reply.json["allocation_requests"]
        hosts = {next(iter(each["allocations"]))[-12:-2] for each in found}
        assert len(found) == len(hosts) == HOSTS
