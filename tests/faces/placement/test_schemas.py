"""Bodies: msgspec decides, and the explanation is in the words clients know."""

import json
from typing import Any

import pytest

from moorage.core.limits import MAX_INT
from moorage.faces.placement import schemas
from moorage.faces.placement.problems import ProblemError
from moorage.faces.placement.schemas import body_decode

RP = "4e6e6d4c-1111-4000-8000-000000000001"
OWNER: dict[str, Any] = {"project_id": "p", "user_id": "u"}
TAKEN = {RP: {"resources": {"VCPU": 1}}}
FULL: dict[str, Any] = {
    **OWNER,
    "allocations": TAKEN,
    "consumer_generation": None,
    "consumer_type": "INSTANCE",
}


def decoded(kind: Any, value: Any) -> Any:
    """Decode a value from its JSON text."""
    return body_decode(json.dumps(value).encode(), kind)


def refusal(kind: Any, value: Any) -> str:
    """Return why a value is refused."""
    with pytest.raises(ProblemError) as refused:
        decoded(kind, value)
    assert refused.value.status == 400
    assert refused.value.detail.startswith("JSON does not validate: ")
    return refused.value.detail


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (schemas.ProviderPost, {"name": "a", "uuid": RP}),
        (schemas.ProviderPost, {"name": "a", "uuid": "{" + RP.upper() + "}"}),
        (schemas.ProviderPost14, {"name": "a", "parent_provider_uuid": None}),
        (schemas.ProviderPost14, {"name": "a", "parent_provider_uuid": f"urn:uuid:{RP}"}),
        (schemas.InventoryPost, {"resource_class": "VCPU", "total": MAX_INT}),
        (
            schemas.InventoryPut,
            {"total": 1, "allocation_ratio": 3.40282e38, "resource_provider_generation": 0},
        ),
        (schemas.AggregatesPut, [RP, RP.replace("-", "")]),
        (schemas.AllocationsPut12, {**OWNER, "allocations": TAKEN}),
        (schemas.Allocations28, {**OWNER, "allocations": {}, "consumer_generation": None}),
        (schemas.Allocations38, {**FULL, "mappings": {"": [RP], "_A": [RP]}}),
        (schemas.Consumers38, {RP.upper(): FULL}),
    ],
)
def test_accepted(kind: Any, value: Any) -> None:
    """What the API reference allows is taken."""
    decoded(kind, value)


@pytest.mark.parametrize(
    ("kind", "value", "why", "rule"),
    [
        (schemas.ProviderPost, {}, "'name' is a required property", "'required' in schema"),
        (schemas.ProviderPost, {"name": "a" * 201}, "is too long", "'maxLength'"),
        (schemas.ProviderPost, {"name": "a", "uuid": "x"}, "'x' is not a 'uuid'", "'format'"),
        (
            schemas.ProviderPost,
            {"name": "a", "parent_provider_uuid": None},
            "Additional properties are not allowed ('parent_provider_uuid' was unexpected)",
            "'additionalProperties'",
        ),
        (
            schemas.InventoryPost,
            {"resource_class": "VCPU", "total": 0},
            "0 is less than the minimum of 1",
            "'minimum' in schema['properties']['total']",
        ),
        (
            schemas.InventoryPost,
            {"resource_class": "VCPU", "total": MAX_INT + 1},
            "is greater than the maximum of 2147483647",
            "'maximum'",
        ),
        (
            schemas.InventoryPost,
            {"resource_class": "vcpu", "total": 1},
            "'vcpu' does not match '^[A-Z0-9_]+$'",
            "'pattern'",
        ),
        (
            schemas.TraitsPut,
            {"traits": "x", "resource_provider_generation": 1},
            "'x' is not of type 'array'",
            "'type'",
        ),
        (
            schemas.Consumers38,
            {"house": FULL},
            "'house' does not match any of the regexes: '^[0-9a-fA-F-]{36}$'",
            "'additionalProperties'",
        ),
        (schemas.Consumers38, {}, "{} should be non-empty", "'minProperties'"),
        (
            schemas.Allocations38,
            {**OWNER, "allocations": TAKEN, "consumer_generation": 1},
            "'consumer_type' is a required property",
            "'required'",
        ),
        (
            schemas.Allocations38,
            {**FULL, "consumer_type": "instance"},
            "'instance' does not match '^[A-Z0-9_]+$'",
            "'pattern'",
        ),
        (schemas.Allocations38, {**FULL, "mappings": {}}, "should be non-empty", "'minProperties'"),
        (
            schemas.Allocations38,
            {**FULL, "mappings": {"a": "beta"}},
            "'beta' is not of type 'array'",
            "'type'",
        ),
        (
            schemas.AllocationsPut,
            {"allocations": []},
            "[] should be non-empty",
            "'minItems'",
        ),
    ],
)
def test_refused_in_known_words(kind: Any, value: Any, why: str, rule: str) -> None:
    """The sentence and the rule are those that clients look for."""
    detail = refusal(kind, value)
    assert why in detail
    assert f"Failed validating {rule}" in detail


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (schemas.ClassNamed, {"name": "CUSTOM_A\n"}),
        (schemas.InventoryPost, {"resource_class": "VCPU", "total": 1.0}),
        (schemas.Consumers38, {RP + "\n": FULL}),
    ],
)
def test_what_only_the_type_refuses_has_a_reason_too(kind: Any, value: Any) -> None:
    """Where JSON Schema would be content, the type's own words are shown."""
    assert len(refusal(kind, value)) > len("JSON does not validate: ")


def test_explanations_stay_short() -> None:
    """A huge value is not sent back, and not every fault in it is looked for."""
    many = {f"key{number}": number for number in range(20_000)}
    assert len(refusal(schemas.ProviderPost, many)) < 5_000
    assert len(refusal(schemas.AggregatesPut, ["x" * 50_000] * 10)) < 5_000
    assert len(refusal(schemas.AggregatesPut, [[], 1, {}, "a"] * 25_000)) < 5_000


def test_lists_of_unique_items() -> None:
    """What is named twice is told."""
    schemas.check_unique(["a", "b"])
    with pytest.raises(ProblemError) as refused:
        schemas.check_unique([*map(str, range(50_000)), "7"])
    assert "has non-unique elements: '7'" in refused.value.detail
