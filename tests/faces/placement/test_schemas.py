"""Bodies: msgspec decides, and the explanation has the words that clients know."""

import json
import random
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.core import texts
from moorage.core.errors import Error
from moorage.core.ledger import vocabulary
from moorage.core.limits import MAX_INT
from moorage.faces.placement.input import schemas
from moorage.faces.placement.input.bodies import EXPLAINED_BYTES_MAX, body_decode, check_unique
from moorage.faces.placement.input.json_schemas import QUOTED
from moorage.faces.query_strings.queries import usage_query
from moorage.faces.query_strings.refusals import ProblemError
from moorage.faces.query_strings.schema_errors import LENGTH_MAX, explanation
from moorage.faces.web import Limits
from tests.faces.placement.support.mutations import VALUES, mutations

SECONDS_MAX = 0.5
"""Far above the time of an explanation."""

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
    """Bodies that the API reference permits are accepted."""
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
def test_refused_with_the_words_of_placement(kind: Any, value: Any, why: str, rule: str) -> None:
    """The sentence and the rule are those that clients look for."""
    detail = refusal(kind, value)
    assert why in detail
    assert f"Failed validating {rule}" in detail


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (schemas.ClassNamed, {"name": "CUSTOM_A\n"}),
        (schemas.Consumers38, {RP + "\n": FULL}),
    ],
)
def test_reasons_of_values_that_only_the_type_refuses(kind: Any, value: Any) -> None:
    """If the JSON schema accepts the value, the error has the type's own reason."""
    assert len(refusal(kind, value)) > len("JSON does not validate: ")


STRANGE = ("", " ", "\u00e9", "a b", "lower", "\n")


@pytest.mark.parametrize("within", [lambda one: one, lambda one: {RP: one}], ids=["one", "many"])
def test_what_the_original_does_not_check_is_accepted(within: Callable[[Any], Any]) -> None:
    """Names that match no pattern: mappings are ignored, and classes are refused by the ledger."""
    kind = schemas.Consumers38 if RP in within({}) else schemas.Allocations38
    for name in ("", " ", "\u00e9", "\n"):
        for value in (*VALUES, [RP]):
            for others in ({}, {"_A": [RP]}):
                decoded(kind, within({**FULL, "mappings": {name: value, **others}}))
        assert "'mappings'" in refusal(kind, within({**FULL, "mappings": {name: 1, "_A": []}}))
    assert "non-empty" in refusal(kind, within({**FULL, "mappings": {}}))
    reshape = schemas.Reshape38 if RP in within({}) else schemas.InventoriesPut
    for name, value in ((name, value) for name in STRANGE for value in VALUES):
        stock = {"resource_provider_generation": 0, "inventories": {name: value}}
        body = {"inventories": {RP: stock}, "allocations": {}} if RP in within({}) else stock
        found = decoded(reshape, body)
        assert [*found.inventories.get(RP, found).inventories] == [name]


@pytest.mark.parametrize("spelled", ["4.0", "4e0", "40E-1"])
def test_whole_numbers_are_integers(spelled: str) -> None:
    """JSON Schema has no other kind of integer; numbers with a fraction are refused."""
    body = f'{{"resource_class": "VCPU", "total": {spelled}}}'
    found = body_decode(body.encode(), schemas.InventoryPost).total
    assert (found, type(found)) == (4, int)
    assert "4.5 is not of type 'integer'" in refusal(
        schemas.InventoryPost, {"resource_class": "VCPU", "total": 4.5}
    )
    assert "4.0 is not of type 'string'" in refusal(schemas.ProviderPost, {"name": 4.0})


def test_whole_numbers_are_integers_in_long_bodies_too() -> None:
    """The length of a body affects the words of an error, but not whether it is refused."""
    inventories = {f"CUSTOM_{number}": {"total": 4.0} for number in range(1_000)}
    body = {"resource_provider_generation": 0.0, "inventories": inventories}
    assert decoded(schemas.InventoriesPut, body).inventories["CUSTOM_7"].total == 4
    body["inventories"]["CUSTOM_7"]["total"] = 4.5
    assert "Expected `int`" in refusal(schemas.InventoriesPut, body)


def test_explanations_stay_short() -> None:
    """A huge value is not quoted in full, and not all of its faults are searched."""
    many = {f"key{number}": number for number in range(20_000)}
    assert len(refusal(schemas.ProviderPost, many)) < 5_000
    assert len(refusal(schemas.AggregatesPut, ["x" * 50_000] * 10)) < 5_000
    assert len(refusal(schemas.AggregatesPut, [[], 1, {}, "a"] * 25_000)) < 5_000


def nested(depth: int) -> Any:
    """Return nested lists, each with two more members."""
    value: Any = []
    for _ in range(depth):
        value = [value, "x" * 9, 1]
    return value


@pytest.mark.parametrize(
    "value",
    [
        {f"k{number}": 0 for number in range(700)},
        [[], 1, {}, "a"] * 400,
        ["a b c " * 1_300],
        [[1], [2]] * 600,
        nested(14),
        nested(400),
        [str(number) for number in range(1_000)] + ["7"],
    ],
)
def test_the_longest_explanation_is_bounded(value: Any) -> None:
    """For any body, the explanation is neither long nor slow."""
    body = json.dumps(value, separators=(",", ":")).encode()
    assert len(body) <= EXPLAINED_BYTES_MAX
    started = time.thread_time()
    for kind in (schemas.AggregatesPut, schemas.Reshape38):
        with pytest.raises(ProblemError) as refused:
            body_decode(body, kind)
        assert len(refused.value.detail) < LENGTH_MAX + 100
    assert time.thread_time() - started < SECONDS_MAX


def test_lists_of_unique_items() -> None:
    """Duplicates are refused in every form of the body."""
    for kind, body in (
        (schemas.AggregatesPut, [RP, RP]),
        (schemas.AggregatesPut19, {"aggregates": [RP, RP], "resource_provider_generation": 0}),
    ):
        check_unique(["a", "b"], b"", kind)
        with pytest.raises(ProblemError) as refused:
            check_unique([RP, RP], json.dumps(body).encode(), kind)
        assert f"['{RP}', '{RP}'] has non-unique elements" in refused.value.detail
    long = [*map(str, range(50_000)), "7"]
    with pytest.raises(ProblemError) as refused:
        check_unique(long, json.dumps(long).encode(), schemas.AggregatesPut)
    assert "has non-unique elements" in refused.value.detail


GENERATION = {"resource_provider_generation": 0}
ITEM = {"total": 1, "reserved": 0, "min_unit": 1, "max_unit": 1, "step_size": 1}
FIGURES = {**ITEM, "allocation_ratio": 1.5}
LISTED = [{"resource_provider": {"uuid": RP}, "resources": {"VCPU": 1}}]
MAPPED = {**FULL, "mappings": {"_A": [RP]}}
CHANGED = {RP: {**GENERATION, "inventories": {"VCPU": FIGURES}}}


def without(value: dict[str, Any], *names: str) -> dict[str, Any]:
    """Return an object without some of its members."""
    return {name: each for name, each in value.items() if name not in names}


CONSUMER34 = without(MAPPED, "consumer_type")
CONSUMER28 = without(CONSUMER34, "mappings")
CONSUMER13 = without(CONSUMER28, "consumer_generation")
GOOD: dict[Any, Any] = {
    schemas.ProviderPost: {"name": "a", "uuid": RP},
    schemas.ProviderPost14: {"name": "a", "uuid": RP, "parent_provider_uuid": RP},
    schemas.ProviderPut: {"name": "a"},
    schemas.ProviderPut14: {"name": "a", "parent_provider_uuid": None},
    schemas.InventoryPost: {**FIGURES, "resource_class": "VCPU", **GENERATION},
    schemas.InventoryPut: {**FIGURES, **GENERATION},
    schemas.InventoriesPut: {**GENERATION, "inventories": {"VCPU": FIGURES, "DISK_GB": ITEM}},
    schemas.AggregatesPut: [RP],
    schemas.AggregatesPut19: {**GENERATION, "aggregates": [RP]},
    schemas.TraitsPut: {**GENERATION, "traits": ["HW_CPU_X86_VMX", "CUSTOM_A"]},
    schemas.ClassNamed: {"name": "CUSTOM_A"},
    schemas.AllocationsPut: {"allocations": LISTED},
    schemas.AllocationsPut8: {"allocations": LISTED, **OWNER},
    schemas.AllocationsPut12: {"allocations": TAKEN, **OWNER},
    schemas.Allocations28: CONSUMER28,
    schemas.Allocations34: CONSUMER34,
    schemas.Allocations38: MAPPED,
    schemas.Consumers13: {RP: CONSUMER13},
    schemas.Consumers28: {RP: CONSUMER28},
    schemas.Consumers34: {RP: CONSUMER34},
    schemas.Consumers38: {RP: MAPPED},
    schemas.Reshape30: {"inventories": CHANGED, "allocations": {RP: CONSUMER28}},
    schemas.Reshape34: {"inventories": CHANGED, "allocations": {RP: CONSUMER34}},
    schemas.Reshape38: {"inventories": CHANGED, "allocations": {RP: MAPPED}},
}


def kind_name(kind: Any) -> str:
    """Return the name of a type of body."""
    return next(name for name, each in vars(schemas).items() if each is kind)


SAMPLE = 150
"""How many values of each type are compared."""


@pytest.mark.parametrize("kind", list(QUOTED), ids=kind_name)
def test_types_and_quoted_schemas_agree(kind: Any) -> None:
    """A type refuses what its schema refuses, and the schema explains what its type refuses."""
    good = GOOD[kind]
    assert explanation(good, QUOTED[kind]) is None
    decoded(kind, good)
    refused = 0
    values = list(mutations(good))
    for value in random.Random(1).sample(values, min(SAMPLE, len(values))):
        explained = explanation(value, QUOTED[kind])
        try:
            decoded(kind, value)
        except ProblemError as problem:
            refused += 1
            reason = problem.detail.removeprefix("JSON does not validate: ")
            assert explained == reason, value
        else:
            if explained is not None:  # which only the handler checks
                assert "has non-unique elements" in explained, value
    assert refused > len(VALUES) // 2


def test_every_body_has_a_schema() -> None:
    """Every type of body has both a schema and a sample."""
    assert set(GOOD) == set(QUOTED)
    named = {
        each
        for each in vars(schemas).values()
        if isinstance(each, type) and issubclass(each, schemas.Body)
    }
    inside = {schemas.Body, schemas.InventoryItem, schemas.ListedProvider}
    inside |= {schemas.ListedAllocation, schemas.Allocation, schemas.Allocations13}
    assert named - inside <= set(QUOTED)


@given(st.text("AZ09_a \n", max_size=4) | st.integers(250, 260).map("A".__mul__))
def test_names_are_those_of_the_core(name: str) -> None:
    """Bodies, queries, errors and the native API have the same rule for a consumer type."""
    in_query = {"user_id": "u", "project_id": "p", "consumer_type": name}
    pairs = urlencode(in_query).encode()
    verdicts = [
        is_accepted(lambda: msgspec.convert(name, schemas.ConsumerType)),
        explanation({**FULL, "consumer_type": name}, QUOTED[schemas.Allocations38]) is None,
        is_accepted(lambda: usage_query(pairs, 38, Limits())),
        is_accepted(lambda: vocabulary.check_consumer_type(name)),
    ]
    # `$` in a quoted schema also matches before a final newline, as in OpenStack Placement.
    verdicts[1] = verdicts[1] and not name.endswith("\n")
    assert verdicts == [texts.is_name(name)] * len(verdicts)


def is_accepted(check: Callable[[], object]) -> bool:
    """Return whether a check accepts its value."""
    try:
        check()
    except (msgspec.ValidationError, ProblemError, Error):
        return False
    return True
