"""Microversions: how the header is read, and where each one begins."""

import pytest

from moorage.faces.placement.microversion import LATEST, negotiate
from moorage.faces.query_strings.refusals import ProblemError
from tests.faces.placement.support.client import Client


@pytest.mark.parametrize(
    ("header", "version"),
    [
        ("", 0),
        ("placement 1.0", 0),
        ("placement 1.28", 28),
        ("placement latest", LATEST),
        ("PLACEMENT 1.7", 7),
        ("compute 2.87", 0),
        ("compute 2.87,placement 1.9", 9),
        ("placement 1.9, compute 2.87", 9),
        ("placement 1.9,placement 1.10", 10),
        ("placement", 0),
        ("placement\t1.39", 39),
        ("placement \t 1.5", 5),
    ],
)
def test_the_last_entry_for_placement_counts(header: str, version: int) -> None:
    """Other services share the header; without an entry the lowest version applies."""
    assert negotiate(header) == version


@pytest.mark.parametrize(
    "text", ["pony.horse", "1.2.3", "1", "1.x", "1.٣", "1 .2", "+1.2", "1.1_0"]
)
def test_invalid_versions_are_refused(text: str) -> None:
    """An invalid header is a bad request, and the error quotes it."""
    with pytest.raises(ProblemError) as refused:
        negotiate(f"placement {text}")
    assert refused.value.status == 400
    assert f"invalid version string: {text}" in refused.value.detail


@pytest.mark.parametrize("text", ["0.5", "0.9", "1.40", "2.0", "-1.2", "1.-2", "1." + "9" * 99])
def test_unknown_versions_are_not_acceptable(text: str) -> None:
    """The error for a version outside the range names the range."""
    with pytest.raises(ProblemError) as refused:
        negotiate(f"placement {text}")
    assert refused.value.status == 406
    assert f"Unacceptable version header: {text}" in refused.value.detail
    assert refused.value.members == {"max_version": "1.39", "min_version": "1.0"}


@pytest.mark.parametrize(
    ("method", "path", "since", "status"),
    [
        ("GET", "/resource_providers/a/aggregates", 1, 404),
        ("GET", "/resource_classes", 2, 404),
        ("DELETE", "/resource_providers/a/inventories", 5, 405),
        ("GET", "/traits", 6, 404),
        ("GET", "/usages?project_id=a", 9, 404),
        ("GET", "/allocation_candidates?resources=VCPU:1", 10, 404),
        ("POST", "/allocations", 13, 404),
        ("POST", "/reshaper", 30, 404),
    ],
)
def test_routes_begin_at_their_version(
    api: Client, method: str, path: str, since: int, status: int
) -> None:
    """One version earlier the route does not exist; the response names the version in use."""
    before = api.ask(method, path, version=since - 1)
    assert before.status == status
    assert before.headers["openstack-api-version"] == f"placement 1.{since - 1}"
    assert "allow" not in before.headers
    after = api.ask(method, path, version=since)
    stock = "The resource could not be found.\n\n   "
    assert after.status == 200 or after.detail != stock


def test_bad_versions_are_refused_without_a_token(api: Client) -> None:
    """Also at the root, which needs no token."""
    reply = api.ask("GET", "/", token=None, version="1.40")
    assert reply.status == 406
    assert reply.json["errors"][0]["max_version"] == "1.39"
    assert "code" not in reply.json["errors"][0]


def test_the_root_shows_the_range(api: Client) -> None:
    """Version discovery needs no token; both spellings of the root work."""
    for path in ("", "/"):
        reply = api.ask("GET", path, token=None)
        assert reply.status == 200
        assert reply.json == {
            "versions": [
                {
                    "id": "v1.0",
                    "max_version": "1.39",
                    "min_version": "1.0",
                    "status": "CURRENT",
                    "links": [{"rel": "self", "href": ""}],
                }
            ]
        }
