"""What refusals say: the words that clients of the Placement API look into."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.faces.placement.support.client import Client
from tests.faces.placement.support.refusals import RECORDED, ROLES, SETUP, Ask, asks, recorded

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
    """Each address below a provider has a way of its own to say that there is none."""
    reply = api.ask(method, f"/resource_providers/{NOBODY}{below}")
    assert (reply.status, reply.detail) == (
        404,
        f"The resource could not be found.\n\n {detail}  ",
    )


FLOAT = re.compile(r"(got|given:) [0-9]+[.e]")
"""A generation that was sent as 4.0 is told as it is compared: 4."""


@pytest.fixture(scope="module")
def stocked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """What the original had when its refusals were recorded."""
    client = Client(tmp_path_factory.mktemp("stocked"))
    for ask in SETUP:
        assert client.ask(*ask).status < 300
    yield client
    client.close()


def refusals() -> list[tuple[Ask, list[Any]]]:
    """Return requests and what the original says, without those that it fails at."""
    found = zip(asks(), json.loads(RECORDED.read_text()), strict=True)
    return [(ask, said) for ask, said in found if said[0] < 500 and not FLOAT.search(said[2])]


def test_every_refusal_is_worded_as_the_original_does(stocked: Client) -> None:
    """Status, code and every byte of the detail, of all requests that were recorded."""
    differing = []
    for ask, said in refusals():
        reply = stocked.ask(*ask, x_roles=ROLES)
        answered = recorded(reply.status, reply.body)
        if answered != said:
            differing.append((ask, said, answered))
    assert differing == []


def test_enough_was_recorded() -> None:
    """Nearly all of what is asked is refused, in every way that clients know."""
    found = [(ask, said) for ask, said in refusals() if said[0] >= 400]
    assert len(found) > 0.95 * len(asks())
    assert {ask.method for ask, _ in found} == {"GET", "POST", "PUT", "DELETE", "PATCH"}
    assert {status for _, (status, *_) in found} == {400, 404, 405, 409}
    codes = {code for _, (_, code, _) in found}
    assert len(codes) >= 9


def test_a_changed_word_would_be_seen(stocked: Client) -> None:
    """What is kept of a detail tells all of it, also of a long one."""
    ask = next(ask for ask, said in refusals() if "... (" in said[2])
    reply = stocked.ask(*ask, x_roles=ROLES)
    changed = reply.body.replace(b'  "', b'"')
    assert changed != reply.body
    assert recorded(reply.status, changed) != recorded(reply.status, reply.body)
