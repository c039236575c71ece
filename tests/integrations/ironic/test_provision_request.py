"""Every spelling that Ironic accepts is recognised, and nothing is understood in another way."""

import re
from random import Random

import pytest

from moorage.integrations.ironic.provision_request import (
    FORM,
    JSON,
    AmbiguousError,
    ProvisionPath,
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
    ("/v1/nodes/node-1/states/provision?configdrive=x;target=active", JSON, BODY),
    (
        "/v1/nodes/node-1/states/provision",
        JSON,
        b'{"target": "x", "a": [' + b"0," * 200_000 + b"0]}",
    ),
    ("/v1/nodes/node-1/states/provision", FORM, b"target=manage" + b"&a" * 200_000),
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


def test_types_mean_the_same_to_ironic() -> None:
    """WebOb cuts the type at the first semicolon, and searches all of it for a charset."""
    random = Random(1)
    pieces = (
        *(
            JSON,
            FORM,
            "text/plain",
            "; ",
            ";",
            " ",
            "\t",
            ",",
            '"',
            "x=",
            "charset=",
            "CHARSET=",
            "utf-8",
        ),
        *(
            'x="; charset=utf-7;"',
            "UTF8",
            "utf-7",
            "utf-16",
            "us-ascii",
            "charset*=",
            "utf-8''utf-8",
            "boundary=x",
            "\\",
        ),
    )
    accepted = 0
    for _ in range(30_000):
        spelled = random.choice((JSON, FORM, "")) + "".join(
            random.choices(pieces, k=random.randrange(6))
        )
        body = b"target=manage" if FORM in spelled else BODY
        place = place_of("PUT", "/v1/nodes/node-1/states/provision")
        assert place is not None
        try:
            request_of(place, "/v1/nodes/node-1/states/provision", spelled, body)
        except AmbiguousError:
            continue
        accepted += 1
        charset = re.search(r";\s*charset=([^;]*)", spelled, re.IGNORECASE)
        assert charset is None or charset[1].strip().strip('"') in {"utf-8", "UTF8", "us-ascii"}
        assert spelled.split(";", 1)[0].strip() in {JSON, FORM}
    assert accepted > 100


def test_a_charset_within_quotes() -> None:
    """Ironic 39 reads this body in UTF-7, as `active`."""
    body = b'{"target": "abort", "configdrive": "+ACI-,+ACI-target+ACI-:+ACI-active"}'
    spelled = f'{JSON}; x="; charset=utf-7;"; charset=utf-8'
    with pytest.raises(AmbiguousError):
        request_of(ProvisionPath("node-1"), "/v1/nodes/node-1/states/provision", spelled, body)
