"""What refusals say: the words that clients of the Placement API look into."""

import pytest

from tests.faces.placement.client import Client

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
