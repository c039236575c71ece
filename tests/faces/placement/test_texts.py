"""The texts of errors, which clients of the Placement API search for words."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.faces.placement.support.client import Client
from tests.faces.placement.support.refusals import (
    RECORDED,
    ROLES,
    SETUP,
    Request,
    all_requests,
    recorded_form,
)

NOBODY = "4e6e6d4c-1111-4000-8000-000000000009"
SENTENCE = f"No resource provider with uuid {NOBODY} found"


@pytest.mark.parametrize(
    ("method", "below", "detail"),
    [
        ("GET", "", SENTENCE),
        ("DELETE", "", f"{SENTENCE} for delete"),
        ("GET", "/inventories", f"{SENTENCE} : {SENTENCE}"),
        ("DELETE", "/inventories", SENTENCE),
        ("GET", "/inventories/VCPU", f"{SENTENCE} : {SENTENCE}"),
        ("DELETE", "/inventories/VCPU", SENTENCE),
        ("GET", "/usages", f"{SENTENCE}: {SENTENCE}"),
        ("GET", "/traits", f"{SENTENCE}: {SENTENCE}"),
        ("DELETE", "/traits", SENTENCE),
        ("GET", "/aggregates", SENTENCE),
        ("GET", "/allocations", f"Resource provider '{NOBODY}' not found: {SENTENCE}"),
    ],
)
def test_an_unknown_provider(api: Client, method: str, below: str, detail: str) -> None:
    """Each path below a provider words this error differently."""
    reply = api.ask(method, f"/resource_providers/{NOBODY}{below}")
    assert (reply.status, reply.detail) == (
        404,
        f"The resource could not be found.\n\n {detail}  ",
    )


FLOAT = re.compile(r"(got|given:) [0-9]+[.e]")
"""A generation that was sent as 4.0 is quoted as 4, as it is compared."""


@pytest.fixture(scope="module")
def stocked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """Yield a client of a ledger as Placement had it when its responses were recorded."""
    client = Client(tmp_path_factory.mktemp("stocked"))
    for ask in SETUP:
        assert client.ask(*ask).status < 300
    yield client
    client.close()


def refusals() -> list[tuple[Request, list[Any]]]:
    """Return requests and Placement's responses, except those where it fails."""
    found = zip(all_requests(), json.loads(RECORDED.read_text()), strict=True)
    return [
        (ask, expected)
        for ask, expected in found
        if expected[0] < 500 and not FLOAT.search(expected[2])
    ]


def test_refusals_agree_with_placement(stocked: Client) -> None:
    """Status, code and every byte of the detail agree, for all recorded requests."""
    differing = []
    for ask, expected in refusals():
        reply = stocked.ask(*ask, x_roles=ROLES)
        answered = recorded_form(reply.status, reply.body)
        if answered != expected:
            differing.append((ask, expected, answered))
    assert differing == []


def test_enough_was_recorded() -> None:
    """Nearly all recorded requests are refused, with all statuses that clients know."""
    found = [(ask, expected) for ask, expected in refusals() if expected[0] >= 400]
    assert len(found) > 0.95 * len(all_requests())
    assert {ask.method for ask, _ in found} == {"GET", "POST", "PUT", "DELETE", "PATCH"}
    assert {status for _, (status, *_) in found} == {400, 404, 405, 409}
    codes = {code for _, (_, code, _) in found}
    assert len(codes) >= 9


def test_a_changed_detail_is_noticed(stocked: Client) -> None:
    """The recorded digest of a detail covers all of it, also of a long one."""
    ask = next(ask for ask, expected in refusals() if "... (" in expected[2])
    reply = stocked.ask(*ask, x_roles=ROLES)
    changed = reply.body.replace(b'  "', b'"')
    assert changed != reply.body
    assert recorded_form(reply.status, changed) != recorded_form(reply.status, reply.body)
