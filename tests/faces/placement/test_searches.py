"""The limits of a search, as clients of candidates see them."""

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


def ports_query(groups: int, more: str = "") -> str:
    """Return the path of a query for this many ports of one host."""
    parts = "&".join(f"resources{n}=CUSTOM_NIC:1" for n in range(1, groups + 1))
    return f"/allocation_candidates?{parts}&group_policy=isolate{more}"


@pytest.mark.parametrize("version", [25, 29, 36, 39])
def test_a_search_without_enough_steps_is_a_503(ported: Client, version: int) -> None:
    """It is a 503 with Retry-After in the form of the API; with enough steps it has candidates."""
    searches = ported.service.searches
    enough, searches.steps_max = searches.steps_max, 1
    question = ports_query(2 if version >= 29 else 1)  # before 1.29 one provider must suffice
    reply = ported.ask("GET", question, version=version)
    assert reply.status == 503
    assert reply.headers["retry-after"] == "1"
    assert "ran out of steps before it found anything" in reply.detail
    (error,) = reply.json["errors"]
    assert error["title"] == "Service Unavailable" and error["status"] == 503
    searches.steps_max = enough
    assert ported.ask("GET", question, version=version).json["allocation_requests"]


def test_too_few_steps_before_1_25(ported: Client) -> None:
    """The error is the same in versions without granular groups."""
    ported.service.searches.steps_max = 1
    for version in (10, 17, 23):
        reply = ported.ask("GET", "/allocation_candidates?resources=CUSTOM_NIC:1", version=version)
        assert reply.status == 503 and reply.headers["retry-after"] == "1"


def test_a_cut_search_returns_what_it_found(ported: Client) -> None:
    """A search that runs out of steps returns the candidates found so far."""
    ported.service.searches.steps_max = 900
    reply = ported.ask("GET", ports_query(2))
    assert reply.status == 200
    found = reply.json["allocation_requests"]
    assert 0 < len(found) < HOSTS * PORTS * (PORTS - 1)
    assert ported.service.searches.counters.cut == 1


def test_a_long_answer_comes_in_pieces(ported: Client) -> None:
    """It is complete and valid, with each summary once; a short response has a length."""
    reply = ported.ask("GET", ports_query(3))
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
    short = ported.ask("GET", ports_query(3, "&limit=7"))
    assert len(short.json["allocation_requests"]) == 7
    assert short.headers["content-length"] == str(len(short.body))


def test_a_limited_search_returns_each_host_once(ported: Client) -> None:
    """With a limit that equals the number of hosts, each host is returned once."""
    for _ in range(3):
        reply = ported.ask("GET", ports_query(3, f"&limit={HOSTS}"))
        found = reply.json["allocation_requests"]
        hosts = {next(iter(each["allocations"]))[-12:-2] for each in found}
        assert len(found) == len(hosts) == HOSTS
