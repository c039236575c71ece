"""Every spelling that Ironic accepts is recognised, and nothing is understood in another way."""

import pytest

from moorage.integrations.ironic.provision_request import (
    FORM,
    JSON,
    AmbiguousError,
    ProvisionRequest,
    place_of,
    request_of,
)
from tests.integrations.ironic.spellings import ACCEPTED, BODY, WHOLE

OTHERS = [
    ("GET", "/v1/nodes/node-1/states/provision"),
    ("GET", "/v1/nodes?provision_state=active"),
    ("PUT", "/v1/nodes/node-1/states/power"),
    ("PUT", "/v1/nodes/provision/states/power"),
    ("POST", "/v1/nodes"),
    ("PATCH", "/v1/nodes/node-1"),
    ("POST", "/v1/heartbeat/node-1"),
    ("GET", "/"),
]

REFUSED_ADDRESSES = [
    ("PUT", "/v1//nodes/node-1/states/provision"),
    ("PUT", "//v1/nodes/node-1/states/provision"),
    ("PUT", "/v1/nodes/node-1/x/../states/provision"),
    ("PUT", "/v1/nodes/node-1/./states/provision"),
    ("PUT", "/v1/nodes/node-1/%2e%2e/states/provision"),
    ("PUT", "/v1/nodes/node-1/states%2fprovision"),
    ("PUT", "/v1/nodes/node-1/states%2Fprovision"),
    ("PUT", "/v1/nodes/node-1/states/provision;x=1"),
    ("PUT", "/v1/nodes/node-1/states\\provision"),
    ("PUT", "/v1/nodes/node-1/states/provision%00"),
    ("PUT", "/v1/nodes/node-1/states/provision%0a"),
    ("PUT", "/v1/nodes/node-1/states/provision%"),
    ("PUT", "/v1/nodes/node-1/states/provision/manage/x"),
    ("PUT", "/v1/chassis/x/nodes/node-1/states/provision"),
    ("PUT", "/v2/nodes/node-1/states/provision"),
    ("PUT", "/v1/nodes/node-1/x/states/provision"),
    ("PUT", "/states/provision"),
    ("PUT", "/v1/states/provision/nodes/node-1"),
    ("PUT", "/v1/nodes/node-1/children/states/provision"),
    ("POST", "/v1/nodes/node-1/states/provision?_method=put"),
    ("GET", "/v1/nodes/node-1?%5fmethod=delete"),
]

REFUSED_PARAMETERS = [
    ("/v1/nodes/node-1/states/provision?target=provide", JSON, BODY),
    ("/v1/nodes/node-1/states/provision/provide", JSON, BODY),
    ("/v1/nodes/node-1/states/provision?target=a&target=b", None, b""),
    ("/v1/nodes/node-1/states/provision", JSON, b'{"target": "x", "target": "manage"}'),
    ("/v1/nodes/node-1/states/provision", JSON, WHOLE),
    ("/v1/nodes/node-1/states/provision", "text/plain", BODY),
    ("/v1/nodes/node-1/states/provision", None, BODY),
    ("/v1/nodes/node-1/states/provision", "multipart/form-data; boundary=x", b"--x--"),
    ("/v1/nodes/node-1/states/provision", JSON + "; charset=utf-16", BODY),
    ("/v1/nodes/node-1/states/provision", JSON, b"[" * 100_000),
    ("/v1/nodes/node-1/states/provision", JSON, b'["manage"]'),
    ("/v1/nodes/node-1/states/provision", JSON, b'{"target": ["manage"]}'),
    ("/v1/nodes/node-1/states/provision", JSON, b'{"target": ""}'),
    ("/v1/nodes/node-1/states/provision", JSON, b'{"target": "manage"'),
    ("/v1/nodes/node-1/states/provision", JSON, b'{"target": "\xff"}'),
    ("/v1/nodes/node-1/states/provision", FORM, b"target=manage&target=x"),
    ("/v1/nodes/node-1/states/provision", None, b""),
    ("/v1/nodes/states/provision", JSON, BODY),
]


@pytest.mark.parametrize(("method", "address", "content_type", "body"), ACCEPTED)
def test_accepted_spellings(
    method: str, address: str, content_type: str | None, body: bytes
) -> None:
    """Each is the same request."""
    place = place_of(method, address)
    assert place is not None
    found = request_of(place, address, content_type, body)
    assert found == ProvisionRequest("node-1", "manage")


def test_the_method_may_be_in_small_letters() -> None:
    """Ironic 39 refuses it; another server before Ironic may not."""
    assert place_of("put", "/v1/nodes/node-1/states/provision") is not None


def test_a_node_may_have_any_name() -> None:
    """Also one of a part of the path."""
    for name in ("states", "provision", "nodes", "v1", "chassis"):
        place = place_of("PUT", f"/v1/nodes/{name}/states/provision")
        assert place is not None
        assert place.node == name


@pytest.mark.parametrize(("method", "address"), OTHERS)
def test_other_requests(method: str, address: str) -> None:
    """They are passed on as they are."""
    assert place_of(method, address) is None


@pytest.mark.parametrize(("method", "address"), REFUSED_ADDRESSES)
def test_ambiguous_addresses(method: str, address: str) -> None:
    """They are refused, whether Ironic would accept them or not."""
    with pytest.raises(AmbiguousError):
        place_of(method, address)


@pytest.mark.parametrize(("address", "content_type", "body"), REFUSED_PARAMETERS)
def test_ambiguous_parameters(address: str, content_type: str | None, body: bytes) -> None:
    """What is missing, given twice, or of a type that is read in several ways is refused."""
    place = place_of("PUT", address)
    assert place is not None
    with pytest.raises(AmbiguousError):
        request_of(place, address, content_type, body)


def test_other_members_of_the_body_may_be_anything() -> None:
    """Clean steps, config drives and others are Ironic's business."""
    body = b'{"target": "clean", "clean_steps": [{"a": {"b": 1}, "c": null}], "configdrive": "x"}'
    address = "/v1/nodes/node-1/states/provision"
    place = place_of("PUT", address)
    assert place is not None
    assert request_of(place, address, JSON, body) == ProvisionRequest("node-1", "clean")
