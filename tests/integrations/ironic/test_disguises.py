"""What the gate passes on is no request for a provision state, however a server reads it."""

import re
from collections import Counter

import pytest
from multidict import CIMultiDict

from moorage.integrations.ironic import provision_request
from moorage.integrations.ironic.gate import heads
from moorage.integrations.ironic.gate.heads import OVERRIDING, BadHeadError, check_head
from moorage.integrations.ironic.provision_request import (
    FORM,
    JSON,
    READING,
    AmbiguousError,
    ProvisionRequest,
    place_of,
    request_of,
)
from tests.integrations.ironic.disguises import (
    Disguise,
    disguises,
    is_provision,
    readings,
    verbs_of,
)

PROVISION = "/v1/nodes/node-1/states/provision"
REFUSED, PASSED = "refused", "passed on"


def decided(one: Disguise) -> ProvisionRequest | str:
    """Return what the gate takes a request for, or that it refuses it or passes it on."""
    headers = CIMultiDict({"Host": "a"})
    try:
        check_head(one.method, one.target, headers)
        place = place_of(one.method, one.target, has_body=bool(one.body))
        if place is None:
            return PASSED
        return request_of(place, one.target, one.content_type, one.body)
    except (BadHeadError, AmbiguousError):
        return REFUSED


def slipped(one: Disguise) -> set[str]:
    """Return the readings of a request in which it asks for something else than the gate thinks."""
    found = decided(one)
    if found == REFUSED or (one.method.upper() in READING and not one.body):
        return set()
    ways = {read for read in readings(one.target) if is_provision(read)}
    if isinstance(found, str):
        return ways
    return {read for read in ways if verbs_of(read) - {found.target}}


def test_nothing_slips_through() -> None:
    """Of 6,000 disguises none is understood in another way after three undoings."""
    seen: Counter[str] = Counter()
    for one in disguises(39, 6_000, "node-1", "active"):
        assert not slipped(one), one
        seen[str(decided(one))] += 1
    assert seen[REFUSED] > 2_000
    assert seen[str(ProvisionRequest("node-1", "active"))] > 200
    assert seen[PASSED] > 100


def test_the_generator_finds_what_did_slip_through(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: with the letters and verbs that were allowed before, a fragment is found."""
    monkeypatch.setattr(heads, "TARGET", re.compile(r"/[\x21-\x7e]*"))
    monkeypatch.setattr(provision_request, "VERB", re.compile(".+"))
    assert any(slipped(one) for one in disguises(39, 6_000, "node-1", "active"))


@pytest.mark.parametrize("letter", [*'#"<>[]\\^`{|} \t\x00\x7f', "\xe9", "%", "%1", "%g0", "%-1"])
@pytest.mark.parametrize("address", ["/v1/nodes", "/v1/nodes?x=", f"{PROVISION}?target=active"])
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_letters_outside_of_rfc_3986(method: str, address: str, letter: str) -> None:
    """They are refused in every request, wherever it leads."""
    for target in (address + letter, address + letter + "x", address[:4] + letter + address[4:]):
        with pytest.raises(BadHeadError):
            check_head(method, target, CIMultiDict({"Host": "a"}))


def test_letters_of_rfc_3986() -> None:
    """All others pass, as they are sent."""
    for target in (
        "/",
        "/v1/nodes/node-1.example~_-",
        "/v1/allocations/a!$&'()*+,;=:@b",
        "/v1/nodes?fields=uuid,name&sort_key=x/y?z:@!$'()*+,;=%C3%A9%23",
    ):
        check_head("GET", target, CIMultiDict({"Host": "a"}))


@pytest.mark.parametrize(
    "verb",
    ["active#x", "active ", " active", "ACTIVE", "active\0", "active;x", "a-b", "aktivé", "1"],
)
def test_a_verb_has_small_letters(verb: str) -> None:
    """Nothing else is forwarded as one, wherever it stands."""
    place = place_of("PUT", PROVISION)
    assert place is not None
    body = b'{"target": %s}' % str(list(verb.encode("utf-16-be"))).encode()
    with pytest.raises(AmbiguousError):
        request_of(place, PROVISION, JSON, body)
    with pytest.raises(AmbiguousError):
        request_of(place, PROVISION, FORM, b"target=" + verb.encode())


@pytest.mark.parametrize("method", [*sorted(READING), "get", "Head"])
def test_a_reading_has_no_body_there(method: str) -> None:
    """A server could take its body for a request, or its form for one with another method."""
    assert place_of(method, PROVISION) is None
    with pytest.raises(AmbiguousError):
        place_of(method, PROVISION, has_body=True)
    assert place_of(method, "/v1/nodes/node-1", has_body=True) is None


def test_a_compressed_body_is_refused() -> None:
    """A proxy may unpack it; of other requests it is passed on."""
    with pytest.raises(AmbiguousError):
        place_of("PUT", PROVISION, has_body=True, is_coded=True)
    assert place_of("POST", "/v1/nodes", has_body=True, is_coded=True) is None


@pytest.mark.parametrize(
    "name", [*sorted(OVERRIDING), "X_HTTP_Method_Override", "Content_Encoding"]
)
def test_headers_that_replace_the_method_or_the_path(name: str) -> None:
    """They are refused in every request."""
    with pytest.raises(BadHeadError):
        check_head("POST", "/v1/nodes", CIMultiDict({"Host": "a", name: "PUT"}))


def test_two_types_of_a_body() -> None:
    """Ironic's server could choose the other one."""
    headers = CIMultiDict([("Host", "a"), ("Content-Type", JSON), ("Content-Type", FORM)])
    with pytest.raises(BadHeadError):
        check_head("PUT", PROVISION, headers)
