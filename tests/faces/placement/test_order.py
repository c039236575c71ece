"""The order of checks is Placement's: which error is returned if several apply."""

from typing import Any

import pytest

from tests.faces.placement.support.client import Client

RP = "4e6e6d4c-1111-4000-8000-000000000001"
NOBODY = "4e6e6d4c-1111-4000-8000-00000000dead"
GONE = f"/resource_providers/{NOBODY}"


def test_the_token_comes_first(api: Client) -> None:
    """It is checked before the version, the path and the method."""
    assert api.ask("PATCH", "/nowhere", token=None, version="1.40").status == 401


def test_then_the_version(api: Client) -> None:
    """It is checked before the path."""
    assert api.ask("GET", "/nowhere", version="1.40").status == 406
    assert api.ask("GET", "/nowhere", version="1.2.3").status == 400


def test_then_the_content_length(api: Client) -> None:
    """It is checked before the path, also if the body is not needed."""
    reply = api.ask("POST", "/nowhere", content_length="hi mom")
    assert reply.status == 400
    assert "content-length header must be an integer" in reply.detail
    reply = api.ask("GET", "/nowhere", content_length="5")
    assert reply.status == 400
    assert "content-type header required when content-length > 0" in reply.detail
    assert api.ask("GET", "/nowhere", content_length="0").status == 404


def test_then_the_address_and_the_method(api: Client) -> None:
    """Any token is sufficient to learn that a path does not exist."""
    assert api.ask("GET", "/nowhere", token="user").status == 404
    for path in ("/resource_providers/", "/resource_providers//traits", "//", "/usages/x/y"):
        assert api.ask("GET", path).status == 404
    reply = api.ask("DELETE", "/resource_providers", token="user")
    assert reply.status == 405
    assert reply.headers["allow"] == "GET, POST"
    assert "The method DELETE is not allowed for this resource." in reply.detail
    one = api.ask("PATCH", f"/resource_providers/{RP}")
    assert one.headers["allow"] == "GET, DELETE, PUT"
    assert api.ask("OPTIONS", "/traits").status == 405
    assert api.ask("HEAD", "/traits").status == 405


def test_then_the_version_of_the_route(api: Client) -> None:
    """It is checked before content type and policy, except for aggregates."""
    assert api.ask("PUT", f"{GONE}/traits", token="user", version=5).status == 404
    assert api.ask("PUT", f"{GONE}/aggregates", token="user", version=0).status == 415
    assert api.ask("PUT", f"{GONE}/aggregates", [], token="user", version=0).status == 404


def test_then_content_type_or_accept(api: Client) -> None:
    """They are checked before the policy."""
    reply = api.ask("POST", "/resource_providers", token="user")
    assert reply.status == 415
    assert "The media type None is not supported, use application/json" in reply.detail
    reply = api.ask("PUT", GONE, b"x", token="user", content_type="text/plain")
    assert "The media type text/plain is not supported, use application/json" in reply.detail
    reply = api.ask("GET", "/traits", token="user", accept="text/plain")
    assert reply.status == 406
    assert b"Only application/json is provided" in reply.body
    kind = "application/json; charset=utf-8"
    assert api.ask("PUT", GONE, b"x", token="user", content_type=kind).status == 403


def test_some_routes_need_no_content_type(api: Client) -> None:
    """Routes that create an object by its name alone have no body."""
    assert api.ask("PUT", "/traits/CUSTOM_A").status == 201
    assert api.ask("PUT", "/resource_classes/CUSTOM_A").status == 201
    assert api.ask("PUT", "/resource_classes/CUSTOM_A", version=6).status == 415
    assert api.ask("GET", "/traits/CUSTOM_A", accept="text/plain").status == 204


BODIES: list[tuple[str, str, Any]] = [
    ("PUT", GONE, {"name": "a"}),
    ("PUT", f"{GONE}/inventories", {"resource_provider_generation": 0, "inventories": {}}),
    ("POST", f"{GONE}/inventories", {"resource_class": "VCPU", "total": 1}),
    ("PUT", f"{GONE}/inventories/VCPU", {"total": 1, "resource_provider_generation": 0}),
    ("PUT", f"{GONE}/aggregates", {"aggregates": [], "resource_provider_generation": 0}),
]


@pytest.mark.parametrize(("method", "path", "body"), BODIES)
def test_then_policy_then_existence_then_the_body(
    api: Client, method: str, path: str, body: Any
) -> None:
    """Existence must not be revealed without permission; it is checked before the body."""
    assert api.ask(method, path, body, token="user").status == 403
    assert api.ask(method, path, b"{").status == 404
    reply = api.ask(method, path, body)
    assert reply.status == 404
    assert f"No resource provider with uuid {NOBODY} found" in reply.detail
    api.provider(RP)
    assert api.ask(method, path.replace(NOBODY, RP), b"{").status == 400


def test_two_routes_with_another_order(api: Client) -> None:
    """Traits check the body before the provider; allocations the consumer before the body."""
    assert api.ask("PUT", f"{GONE}/traits", b"{").status == 400
    reply = api.ask("PUT", "/allocations/house", b"{")
    assert "Malformed consumer_uuid: house" in reply.detail
    path = f"/allocations/{NOBODY}"
    assert "Malformed JSON" in api.ask("PUT", path, b"{").detail


def test_the_body_comes_before_the_generation(api: Client) -> None:
    """An outdated generation is reported only if everything else is valid."""
    api.provider(RP)
    path = f"/resource_providers/{RP}/inventories"
    stale = {"resource_provider_generation": 7, "inventories": {}}
    assert api.ask("PUT", path, {**stale, "more": 1}).status == 400
    reply = api.ask("PUT", path, stale)
    assert (reply.status, reply.code) == (409, "placement.concurrent_update")


def test_preflights_need_no_token(api: Client) -> None:
    """With an origin set every OPTIONS is answered at once, otherwise it is a wrong method."""
    origin = "http://valid.example.com"
    asks = {
        "origin": origin,
        "access_control_request_method": "PUT",
        "access_control_request_headers": "OpenStack-API-Version",
    }
    assert api.ask("OPTIONS", "/", token=None, **asks).status == 405
    api.profile(cors_origin=origin)
    reply = api.ask("OPTIONS", "/nowhere", token=None, version="bad", **asks)
    assert (reply.status, reply.body) == (200, b"")
    assert reply.headers["access-control-allow-origin"] == origin
    assert reply.headers["access-control-allow-methods"] == "PUT"
    assert reply.headers["access-control-allow-headers"] == "OpenStack-API-Version"
    refused: list[dict[str, str]] = [
        {**asks, "origin": "http://other.example.com"},
        {**asks, "access_control_request_headers": "x-evil"},
        {**asks, "access_control_request_method": "STEAL"},
    ]
    for headers in refused:
        reply = api.ask("OPTIONS", "/", token=None, **headers)
        assert reply.status == 200
        assert not any(name.startswith("access-control") for name in reply.headers)
    assert api.ask("GET", "/", origin=origin).headers["access-control-allow-origin"] == origin
    other = api.ask("GET", "/", origin="http://other.example.com")
    assert "access-control-allow-origin" not in other.headers
    assert (
        api.ask("GET", "/nowhere", origin=origin).headers["access-control-allow-origin"] == origin
    )


def test_the_uuid_of_a_new_provider_comes_before_its_name(api: Client) -> None:
    """If the name belongs to one provider and the UUID to another, the error names the UUID."""
    api.provider(RP)
    other = "4e6e6d4c-1111-4000-8000-000000000002"
    api.provider(other)
    reply = api.ask("POST", "/resource_providers", {"name": RP, "uuid": other})
    assert (reply.status, reply.code) == (409, "placement.duplicate_name")
    assert f"Conflicting resource provider uuid: {other} already exists." in reply.detail
    reply = api.ask("POST", "/resource_providers", {"name": RP, "uuid": NOBODY})
    assert f"Conflicting resource provider name: {RP} already exists." in reply.detail


@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_numbers_come_before_the_class(api: Client, method: str) -> None:
    """Numbers are checked before the existence of the class."""
    api.provider(RP)
    figures = {"total": 1, "reserved": 2}
    body: dict[str, Any] = {**figures, "resource_class": "CUSTOM_NO"}
    if method == "PUT":
        inventories = {"CUSTOM_NO": {"total": 1}, "VCPU": figures}
        body = {"resource_provider_generation": 0, "inventories": inventories}
    reply = api.ask(method, f"/resource_providers/{RP}/inventories", body)
    assert reply.status == 400
    assert "The reserved value is greater than total." in reply.detail


def test_the_providers_of_a_claim_come_before_its_classes(api: Client) -> None:
    """Consumers are checked first, then all providers, then classes, then amounts."""
    api.provider(RP, VCPU=1)
    claim: dict[str, Any] = {
        "allocations": {
            RP: {"resources": {"CUSTOM_NO": 1, "VCPU": 9}},
            NOBODY: {"resources": {"VCPU": 1}},
        },
        "project_id": "project",
        "user_id": "user",
        "consumer_generation": 5,
        "consumer_type": "INSTANCE",
    }
    path = "/allocations/4e6e6d4c-1111-4000-8000-00000000c001"
    assert "expected null but got 5" in api.ask("PUT", path, claim).detail
    claim["consumer_generation"] = None
    assert f"Allocation for resource provider '{NOBODY}'" in api.ask("PUT", path, claim).detail
    del claim["allocations"][NOBODY]
    assert "No such resource class CUSTOM_NO" in api.ask("PUT", path, claim).detail
    del claim["allocations"][RP]["resources"]["CUSTOM_NO"]
    assert api.ask("PUT", path, claim).status == 409


def test_a_reshape_without_an_inventory_in_use(api: Client) -> None:
    """The error is a 409 with the code of an inventory in use, for any user."""
    api.provider(RP, VCPU=8, DISK_GB=10)
    consumer = "4e6e6d4c-1111-4000-8000-00000000c001"
    assert api.claim(consumer, RP, DISK_GB=1).status == 204
    claim = {
        "allocations": {RP: {"resources": {"DISK_GB": 2}}},
        "project_id": "project",
        "user_id": "user",
        "consumer_generation": 1,
        "consumer_type": "INSTANCE",
    }
    offer = {RP: {"resource_provider_generation": 2, "inventories": {"VCPU": {"total": 8}}}}
    body = {"inventories": offer, "allocations": {consumer: claim}}
    reply = api.ask("POST", "/reshaper", body, x_roles="service")
    assert (reply.status, reply.code) == (409, "placement.inventory.inuse")
    assert f"update conflict: Inventory for 'DISK_GB' on resource provider '{RP}' in use." in (
        reply.detail
    )
