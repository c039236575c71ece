"""The examples of the OpenAPI description: one for every operation, with its types."""

import json
from typing import Any

import jsonschema
import pytest

from moorage.faces.v1.decoding import body_decode, query_decode
from moorage.faces.v1.openapi import EXAMPLES, REFUSAL, document, template_of
from moorage.faces.web import RefusalError
from moorage.wire.operations import operations_by_id
from moorage.wire.operations.operation import VARIABLE, Operation, pairs_of
from moorage.wire.problems import Problem

OPERATIONS = operations_by_id()


def examples() -> dict[str, dict[str, Any]]:
    """Return all examples, by the id of their operation."""
    found: dict[str, dict[str, Any]] = json.loads(EXAMPLES.read_text())
    return found


def check(operation: Operation[Any], example: dict[str, Any]) -> None:
    """Fail unless a call is one of this operation. Raises RefusalError: a value does not fit."""
    content = operation.content
    assert example["path"].keys() == {name for name, _ in VARIABLE.findall(operation.path)}
    if content.parameters is None:
        assert example["query"] == {}
    else:
        query_decode(pairs_of(example["query"]), content.parameters)
    if example["body"] is not None:
        body_decode(json.dumps(example["body"]).encode(), content.body)
    if content.answer is None:
        assert (example["status"], example["answer"]) == (204, None)
        return
    assert example["status"] in (content.status, *content.also)
    body_decode(json.dumps(example["answer"]).encode(), content.answer)


def test_every_operation_has_an_example() -> None:
    """`make openapi` records them, tests/faces/v1/recorded/scenario.py says what is called."""
    assert examples().keys() == {*OPERATIONS, REFUSAL}
    bodies = {name for name, one in OPERATIONS.items() if one.content.body is not None}
    assert bodies == {name for name, one in examples().items() if one.get("body") is not None}


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_example_has_the_types_of_its_operation(name: str) -> None:
    """As the server decodes input, and as the description has the schema of the answer."""
    operation, example = OPERATIONS[name], examples()[name]
    check(operation, example)
    described = json.loads(document())
    path = described["paths"][template_of(operation.path)][operation.method.lower()]
    given = {
        (one["in"], one["name"]): one["example"] for one in path["parameters"] if "example" in one
    }
    assert given == {
        (place, one): value for place in ("path", "query") for one, value in example[place].items()
    }
    if example["answer"] is not None:
        content = path["responses"][str(example["status"])]["content"]["application/json"]
        assert content["example"] == example["answer"]
        schema = {**content["schema"], "components": described["components"]}
        jsonschema.Draft202012Validator(schema).validate(example["answer"])


def test_the_refusal() -> None:
    """It is a refusal, as the description shows it."""
    refused = examples()[REFUSAL]["answer"]
    body_decode(json.dumps(refused).encode(), Problem)
    shown = json.loads(document())["components"]["responses"]["Refused"]["content"]
    assert shown["application/problem+json"]["example"] == refused


@pytest.mark.parametrize(
    ("name", "part", "change"),
    [
        ("put_pool", "body", {"limt": 1}),
        ("put_pool", "answer", {"limit": "one"}),
        ("list_pools", "query", {"limit": "many"}),
        ("list_pools", "answer", {"pools": None}),
    ],
)
def test_a_wrong_example_is_found(name: str, part: str, change: dict[str, Any]) -> None:
    """The control."""
    example = examples()[name]
    check(OPERATIONS[name], example)
    with pytest.raises(RefusalError):
        check(OPERATIONS[name], {**example, part: {**example[part], **change}})
