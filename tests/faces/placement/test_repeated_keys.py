"""A key may stand once in each object of a body, whatever the type of the body has for defaults."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from moorage.faces.json_decoding import plain_decode
from moorage.faces.placement.input import schemas
from moorage.faces.placement.input.bodies import body_decode
from moorage.faces.query_strings.refusals import ProblemError

UUID = "4f6f6b3e-2c0e-4b5c-9d56-6f7c2a0d7a11"
ALLOCATIONS = {UUID: {"resources": {"VCPU": 1}}}
CONSUMER = {"allocations": ALLOCATIONS, "project_id": "p", "user_id": "u"}
INVENTORIES = {"resource_provider_generation": 1, "inventories": {"VCPU": {"total": 8}}}

BODIES: list[tuple[type[Any], Any]] = [
    (schemas.ProviderPost14, {"name": "a", "uuid": UUID}),
    (schemas.InventoriesPut, INVENTORIES),
    (schemas.AggregatesPut19, {"aggregates": [UUID], "resource_provider_generation": 1}),
    (schemas.TraitsPut, {"traits": ["CUSTOM_A"], "resource_provider_generation": 1}),
    (schemas.AllocationsPut12, CONSUMER),
    (
        schemas.Reshape38,
        {
            "inventories": {UUID: INVENTORIES},
            "allocations": {
                UUID: {**CONSUMER, "consumer_generation": None, "consumer_type": "INSTANCE"}
            },
        },
    ),
]


def repeated(value: Any) -> Iterator[str]:
    """Yield texts of a JSON value; in each, one key of one object is repeated."""
    if isinstance(value, list):
        for one in value:
            yield from (f"[{text}]" for text in repeated(one))
    if not isinstance(value, dict):
        return
    members = [f"{json.dumps(key)}:{json.dumps(inner)}" for key, inner in value.items()]
    for at, (key, inner) in enumerate(value.items()):
        yield f"{{{','.join([members[at], *members])}}}"
        for text in repeated(inner):
            others = members[:at] + members[at + 1 :]
            yield f"{{{','.join([f'{json.dumps(key)}:{text}', *others])}}}"


@pytest.mark.parametrize(("kind", "body"), BODIES, ids=lambda one: getattr(one, "__name__", ""))
def test_a_repeated_key_is_refused(kind: type[Any], body: Any) -> None:
    """At every depth; without a repetition the body is accepted."""
    assert body_decode(json.dumps(body).encode(), kind)
    texts = [*repeated(body)]
    assert len(texts) >= len(body)
    for text in texts:
        with pytest.raises(ProblemError, match="given more than once"):
            body_decode(text.encode(), kind)


@pytest.mark.parametrize("kind", [schemas.AllocationsPut12, schemas.Allocations38])
def test_claims_are_decoded_in_one_pass(kind: type[Any]) -> None:
    """The control: the short way is taken at all."""
    body = {**CONSUMER, "consumer_generation": None, "consumer_type": "INSTANCE", "mappings": {}}
    known = {name: body[name] for name in kind.__struct_fields__ if name in body}
    known.pop("mappings", None)
    assert plain_decode(json.dumps(known).encode(), kind) is not None
